/* Bodies of constructs that have no frame, since their last call is made a jump: see the test that runs it
   (../call_paths.rs). */

#include <omp.h>

#include "work.h"

#define STEP __attribute__((noinline))

static volatile double sink;
static volatile long calls;

STEP void burn(double seconds)
{
    WORK_NS(seconds * 1e9);
    sink += 1;
}

STEP void in_region(void) { burn(0.05); calls++; }

STEP void in_task(void) { burn(0.05); calls++; }

STEP void in_inner(void) { burn(0.05); calls++; }

STEP void region(void)
{
#pragma omp parallel
    in_region();
}

STEP void create(void)
{
    int chain = 0, other = 0;
    for (int i = 0; i < 2; i++) {
#pragma omp task depend(inout : chain)
        in_task();
#pragma omp task depend(inout : other)
        in_task();
    }
#pragma omp taskwait
    calls++;
}

STEP void tasks(void)
{
#pragma omp parallel
#pragma omp single
    create();
}

/* Whose fork and whose body are jumps, within a body that jumps here. */
STEP void inner(void)
{
#pragma omp parallel num_threads(2)
    in_inner();
}

STEP void nested(void)
{
#pragma omp parallel num_threads(2)
    inner();
}

int main(void)
{
    omp_set_max_active_levels(2);
    region();
    tasks();
    nested();
    omp_set_max_active_levels(1);
    nested();
    return 0;
}
