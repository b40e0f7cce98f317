/* Every call path in which time is spent is known: see the test that runs it (../call_paths.rs).
   The time is all spent in burn, which is inlined into its callers. */

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

STEP void leaf(void) { burn(); calls++; }

STEP void down(int levels)
{
    if (levels > 1)
        down(levels - 1);
    else
        leaf();
    calls++;
}

STEP void in_region(void) { burn(); calls++; }

STEP void deep(void) { burn(); calls++; }

STEP void inner(void)
{
#pragma omp parallel num_threads(2) /* the inner region */
    {
        deep();
        calls++; /* a call at the end might become a jump */
    }
    calls++;
}

STEP void in_task(void) { burn(); calls++; }

STEP void create(void)
{
    for (int i = 0; i < 4; i++) {
#pragma omp task /* the task */
        in_task();
    }
    calls++;
}

STEP void descend(int levels)
{
    if (levels == 0) {
        in_task();
    } else {
#pragma omp task firstprivate(levels) /* the nested task */
        descend(levels - 1);
#pragma omp taskwait
    }
    calls++;
}

STEP void outer(void)
{
#pragma omp parallel num_threads(2) /* the outer region */
    {
        in_region();
        inner();
#pragma omp single
        {
            create();
            descend(2);
        }
    }
    calls++;
}

int main(int argc, char **argv)
{
    rounds = argc > 1 ? atol(argv[1]) : 40000000;
    omp_set_max_active_levels(2);
    down(3);
    outer();
    printf("%ld calls\n", calls > 0 ? 1L : 0L);
    return 0;
}
