/* One function with two regions, one of which has two barriers: each wait is 20 ms or more on one of two threads. */

#include <omp.h>

#include "virtual_time.h"

static volatile long calls;

__attribute__((noinline)) void burn(double seconds)
{
    VIRTUAL_WORK((uint64_t)(seconds * 1e9));
}

__attribute__((noinline)) void step(void)
{
#pragma omp parallel /* the first region */
    {
        burn(0.05 * omp_get_thread_num());
        calls++;
    }
    calls++;
#pragma omp parallel /* the second region */
    {
        burn(0.02 * omp_get_thread_num());
#pragma omp barrier /* the first barrier */
        burn(0.03 * omp_get_thread_num());
#pragma omp barrier /* the second barrier */
        burn(0.04 * omp_get_thread_num());
        calls++;
    }
    calls++;
}

int main(void)
{
    step();
    calls++;
    return 0;
}
