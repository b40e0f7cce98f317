/* Prints the addresses that calls of `here` return to, from places of which the test knows the line. */
#include <stdio.h>

__attribute__((noinline)) void here(const char *name)
{
    printf("%s %p\n", name, __builtin_return_address(0));
}

static inline __attribute__((always_inline)) void inlined(void)
{
    here("inlined");
    __asm__ volatile("");
}

__attribute__((noinline)) void outer(void)
{
    inlined();
    here("outer");
    __asm__ volatile("");
}

__attribute__((noinline)) void team(void)
{
#pragma omp parallel num_threads(1)
    {
        here("region");
        __asm__ volatile("");
#pragma omp task
        {
            here("task");
            __asm__ volatile("");
        }
    }
}

int main(void)
{
    outer();
    team();
    return 0;
}
