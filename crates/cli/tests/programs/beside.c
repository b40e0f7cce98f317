/* Two workers that wait for each other, and for serial code. */
#include <omp.h>

#include "virtual_time.h"

static volatile double sink;

__attribute__((noinline)) void work(double seconds) {
    VIRTUAL_WORK((uint64_t)(seconds * 1e9));
    sink += 1;
}

__attribute__((noinline)) void more(void) {
    work(0.02);
    work(0.02);
    sink = 1;
}

int main(void) {
    for (int round = 0; round < 5; round++) {
#pragma omp parallel
        {
            if (omp_get_thread_num() % 2) more();
            else work(0.02);
#pragma omp barrier
        }
        work(0.02);
    }
    return 0;
}
