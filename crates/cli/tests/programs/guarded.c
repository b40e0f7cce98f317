/* Serial work, then regions with a critical section. */
#include "work.h"

static volatile double sink;
__attribute__((noinline)) void work(double seconds) {
    WORK_NS(seconds * 1e9);
    sink += 1;
}
__attribute__((noinline)) void prepare(void) { work(0.02); sink = 1; }
__attribute__((noinline)) void guarded(void) {
#pragma omp parallel
    for (int i = 0; i < 5; i++) {
#pragma omp critical(table)
        work(0.004);
    }
    sink = 2;
}
int main(void) {
    for (int round = 0; round < 5; round++) { prepare(); guarded(); }
    return 0;
}
