// Regions and tasks of two instantiations of one template, and of a function that its class defines: see the test that runs it (../call_paths.rs).

#include <omp.h>

#include "work.h"

#define STEP __attribute__((noinline))

static volatile double sink;

STEP void burn(double seconds)
{
    WORK_NS(seconds * 1e9);
    sink = sink + 1;
}

template <typename T> STEP void create(T value)
{
    for (int i = 0; i < 2; i++) {
#pragma omp task
        {
            burn(0.03);
            sink = value;
        }
    }
#pragma omp taskwait
    sink = value;
}

template <typename T> STEP void region(T value)
{
#pragma omp parallel
    {
        burn(0.03);
        sink = value;
    }
    sink = value;
}

struct Solver {
    STEP void solve()
    {
#pragma omp parallel
#pragma omp single
        {
#pragma omp task
            {
                burn(0.03);
                sink = 4;
            }
            sink = 5;
        }
        sink = 6;
    }
};

int main()
{
    Solver().solve();
    region(1);
    region(2.0);
#pragma omp parallel
#pragma omp single
    {
        create(1);
        create(2.0);
        sink = 3;
    }
    return 0;
}
