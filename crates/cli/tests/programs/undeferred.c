/* Tasks that are not deferred and lie in one another, by recursion too: clang makes their bodies parts of `stage`. */

#include "virtual_time.h"

__attribute__((noinline)) void helper(void)
{
    VIRTUAL_WORK(40000000);
    __asm__ volatile("");
}

__attribute__((noinline)) void stage(int depth)
{
#pragma omp task if (depth > 9) /* the undeferred */
    {
        helper();
        if (depth > 0) {
            stage(depth - 1);
        } else {
#pragma omp task /* the deferred */
            {
                helper();
                __asm__ volatile("");
            }
#pragma omp taskwait
        }
        __asm__ volatile("");
    }
    __asm__ volatile("");
}

int main(void)
{
#pragma omp parallel
#pragma omp single
    stage(1);
    return 0;
}
