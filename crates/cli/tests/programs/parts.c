/* A function whose first test gcc inlines and whose rest it splits off (`work.part.0`); it inlines the rest, too, where
   the source asks for it. */
#include "work.h"

static int count;

__attribute__((noinline)) static void burn(double seconds)
{
    WORK_NS(seconds * 1e9);
    count++;
}

void work(int depth)
{
    if (depth <= 0)
        return;
    count++;
    burn(0.02);
    count += depth;
    burn(0.02);
    burn(0.02);
    count ^= 3;
    for (int i = 0; i < depth; i++)
        burn(0.001);
}

__attribute__((noinline)) static void outer(int depth)
{
    work(depth);
    __asm__ volatile("");
}

__attribute__((noinline)) static void other(int depth)
{
    work(depth + 1);
    __asm__ volatile("");
}

__attribute__((noinline, flatten)) static void constant(void)
{
    work(3);
    __asm__ volatile("");
}

int main(void)
{
    outer(1);
    other(2);
    constant();
    return 0;
}
