/* Tasks that are created in lambdas, which gcc puts in line. */
#include <algorithm>
#include <time.h>

#include "virtual_time.h"

__attribute__((noinline)) static void burn(double seconds) {
    if (IS_VIRTUAL_TIME) {
        VIRTUAL_WORK((uint64_t)(seconds * 1e9));
        return;
    }
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    for (double end = t.tv_sec + t.tv_nsec / 1e9 + seconds; t.tv_sec + t.tv_nsec / 1e9 < end;)
        clock_gettime(CLOCK_MONOTONIC, &t);
    asm volatile("");
}

int main() {
    int parts[] = {1, 2, 6};
#pragma omp parallel num_threads(2)
    {
#pragma omp single
        std::for_each(parts, parts + 3, [](int part) {
#pragma omp task
            {
                burn(part * 0.03);
                asm volatile("");
            }
        });
#pragma omp single
        std::for_each(parts, parts + 3, [](int part) {
#pragma omp task
            {
                burn(part * 0.03);
                asm volatile("");
            }
        });
    }
}
