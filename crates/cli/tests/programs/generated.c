/* Generates machine code (x86-64) that works in a loop, and names it in perf's map if asked to. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int count, char **given) {
    /* mov rax, rdi; dec rax; jnz -5; ret */
    static const unsigned char code[] = {0x48, 0x89, 0xf8, 0x48, 0xff, 0xc8, 0x75, 0xfb, 0xc3};
    unsigned char *memory =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char path[64];
    if (memory == MAP_FAILED)
        return 1;
    memcpy(memory, code, sizeof code);
    memcpy(memory + 64, code, sizeof code);
    snprintf(path, sizeof path, "/tmp/perf-%d.map", getpid());
    if (count > 1) {
        FILE *map = fopen(path, "w");
        fprintf(map, "%lx 40 generated::first(int)\n", (unsigned long)memory);
        fprintf(map, "%lx 40 generated::second(int)\n", (unsigned long)(memory + 64));
        fclose(map);
    }
    for (int i = 0; i < 2; i++)
        ((void (*)(long))(memory + 64 * i))(atol("400000000"));
    if (count > 1 && !strcmp(given[1], "removed"))
        unlink(path);
    return 0;
}
