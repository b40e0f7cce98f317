/* Target constructs whose kernels are parallel regions, on the host's own device: `offloaded MILLISECONDS`; or one kernel
   that a task waits for: `offloaded MILLISECONDS nowait`. */
#include <stdlib.h>
#include <time.h>

#pragma omp begin declare target
#include "virtual_time.h"

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

static void work(double milliseconds) {
    if (IS_VIRTUAL_TIME) {
        VIRTUAL_WORK((uint64_t)(milliseconds * 1e6));
        return;
    }
    double until = now() + milliseconds;
    while (now() < until) {}
}
#pragma omp end declare target

int main(int count, char **arguments) {
    double limit = count > 1 ? atof(arguments[1]) : 10;
    double done = 0;
    if (count > 2) {
#pragma omp parallel num_threads(2)
#pragma omp masked
        {
#pragma omp target nowait
            work(limit);
#pragma omp taskwait
        }
        return 0;
    }
    for (int i = 0; i < 3; i++) {
#pragma omp target map(tofrom : done)
        {
            work(limit);
            done += 1;
        }
#pragma omp target teams distribute parallel for map(tofrom : done) reduction(+ : done)
        for (int j = 0; j < 4; j++) {
            work(limit);
            done += 1;
        }
    }
    return done != 15;
}
