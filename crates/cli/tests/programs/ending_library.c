/* A library with regions in constructors and destructors, with and without priorities. */
#include <omp.h>

static volatile long steps;

static void work(int count) {
    for (int i = 0; i < count; i++) steps = steps + 1;
}

__attribute__((constructor)) static void set_up(void) {
#pragma omp parallel num_threads(2) /* set_up */
    work(10);
}

__attribute__((destructor(101))) static void tear_down_last(void) {
#pragma omp parallel num_threads(2) /* tear_down_last */
    work(20);
}

__attribute__((destructor(102))) static void tear_down_early(void) {
#pragma omp parallel num_threads(2) /* tear_down_early */
    work(30);
}

__attribute__((destructor)) static void tear_down(void) {
#pragma omp parallel num_threads(2) /* tear_down */
    work(40);
}

void called(void) {
#pragma omp parallel num_threads(2) /* called */
    work(50);
}
