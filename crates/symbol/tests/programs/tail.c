/* A tail call of a function that looks like a runtime's, inside the program; prints the return address. */
#include <stdio.h>

__attribute__((noinline)) void __kmpc_fork_call(void) {
    __asm__ volatile(".skip 4096, 0x90"); /* as large as a runtime: no short jump leads there */
    printf("%lx\n", (long)__builtin_return_address(0));
}

__attribute__((noinline)) void smooth(void) {
    __asm__ volatile("");
    __kmpc_fork_call(); /* the construct */
}

int main(void) {
    smooth();
    return 0;
}
