/* One of two libraries with the same code layout; NAME is the function with the tasks. */
#include "work.h"

__attribute__((noinline)) static void work(void) { WORK_NS(20 * MS); }

__attribute__((noinline)) void NAME(int tasks) {
#pragma omp parallel num_threads(2)
#pragma omp single
    for (int i = 0; i < tasks; i++) {
#pragma omp task
        work();
    }
}

void run(int tasks) {
    NAME(tasks);
}
