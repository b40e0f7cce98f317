/* A library whose exported functions end with regions, so that its own calls of them go through its stubs, and with
   regions in its constructor and destructor, which the loader calls. */
#include <omp.h>

static volatile long steps;

__attribute__((noinline)) static void work(int count) {
    for (int i = 0; i < count; i++) steps = steps + 1;
}

__attribute__((constructor)) static void set_up(void) {
#pragma omp parallel num_threads(2) /* set_up */
    work(1);
}

__attribute__((destructor)) static void tear_down(void) {
#pragma omp parallel num_threads(2) /* tear_down */
    work(2);
}

__attribute__((noinline)) void inward(void) {
#pragma omp parallel num_threads(2) /* inward */
    work(3);
}

__attribute__((noinline)) void outward(void) {
#pragma omp parallel num_threads(2) /* outward */
    work(4);
}

__attribute__((noinline)) void both(void) {
    inward();
    outward();
}

__attribute__((noinline)) void wrapper(void) { both(); }

int run_plugin(int n) {
    for (int i = 0; i < 3; i++) wrapper();
    return n;
}
