/* Tasks that take part in reductions, for which the compiler makes functions of its own, and one below a lambda: the body of
   each is its creator's. */
#include <omp.h>

#include "work.h"

__attribute__((noinline)) static void burn(double seconds) {
    WORK_NS(seconds * 1e9);
}

__attribute__((noinline)) static void sum_up() {
    int sum = 0;
#pragma omp taskgroup task_reduction(+ : sum)
    for (int i = 0; i < 4; i++) {
#pragma omp task in_reduction(+ : sum)
        {
            burn(0.02);
            sum += i;
        }
    }
}

__attribute__((noinline)) static void sum_loop() {
    int sum = 0;
#pragma omp taskloop grainsize(2) reduction(+ : sum)
    for (int i = 0; i < 8; i++) {
        burn(0.01);
        sum += i;
    }
}

int main() {
    auto wait = [] { burn(0.02); };
#pragma omp parallel
#pragma omp single
    {
        sum_up();
        sum_loop();
#pragma omp task
        wait();
    }
    return 0;
}
