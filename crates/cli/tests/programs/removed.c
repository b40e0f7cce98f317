/* Loads a library in one of several ways in which its file is gone or another one afterwards, and calls it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static void copy(const char *from, const char *to) {
    char bytes[4096];
    size_t count;
    FILE *in = fopen(from, "r"), *out = fopen(to, "w");
    while ((count = fread(bytes, 1, sizeof bytes, in)) > 0)
        fwrite(bytes, 1, count, out);
    fclose(in);
    fclose(out);
}

int main(int count, char **given) {
    const char *way = given[1], *library = given[2], *other = given[3], *path = "loaded/library.so";
    char in_memory[64];
    (void)count;
    mkdir("loaded", 0700);
    if (!strcmp(way, "memory")) {
        snprintf(in_memory, sizeof in_memory, "/proc/self/fd/%d", memfd_create("library", 0));
        path = in_memory;
    }
    copy(library, path);
    void *handle = dlopen(path, RTLD_NOW);
    if (!handle)
        return 1;
    if (!strcmp(way, "removed") || !strcmp(way, "replaced")) {
        unlink(path);
        rmdir("loaded");
    }
    if (!strcmp(way, "replaced")) {
        mkdir("loaded", 0700);
        copy(other, path);
    }
    void (*run)(void) = (void (*)(void))dlsym(handle, "run");
    run();
    if (!strcmp(way, "later"))
        unlink(path);
    return 0;
}
