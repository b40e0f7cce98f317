/* Regions eight deep, of one and of two threads, and tasks that create tasks at their bottom: every call path
   in which time is spent is known, see the test that runs it (../call_paths.rs). */

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

#include "virtual_time.h"

static volatile double sink;
static volatile long calls;
static long rounds;

static inline __attribute__((always_inline)) void burn(void)
{
    double sum = 0;
    for (long i = 1; i < rounds; i++)
        if (IS_VIRTUAL_TIME) { VIRTUAL_WORK(20000000); break; } else sum += 1.0 / i;
    sink = sum;
}

#define STEP __attribute__((noinline))

STEP void in_inner_task(void) { burn(); calls++; }

STEP void in_task(void)
{
    burn();
#pragma omp task /* the task of a task */
    {
        in_inner_task();
        calls++;
    }
#pragma omp taskwait
    calls++;
}

STEP void at_bottom(void)
{
    burn();
#pragma omp single
    for (int i = 0; i < 2; i++) {
#pragma omp task /* the task */
        {
            in_task();
            calls++;
        }
    }
    calls++;
}

STEP void nest(int level)
{
    if (level == 8) {
        at_bottom();
    } else {
#pragma omp parallel num_threads(level % 3 == 1 ? 2 : 1) /* the region */
        {
            nest(level + 1);
            calls++; /* a call at the end might become a jump */
        }
    }
    calls++;
}

int main(int argc, char **argv)
{
    rounds = argc > 1 ? atol(argv[1]) : 20000000;
    omp_set_max_active_levels(8);
    nest(0);
    printf("%ld calls\n", calls > 0 ? 1L : 0L);
    return 0;
}
