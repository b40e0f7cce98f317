/* A library that uses OpenMP, for a program that does not. */
#include <stdlib.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

int run_plugin(int n) {
    int sum = 0;
    const char *each = getenv("PLUGIN_MILLISECONDS");
    double milliseconds = each ? atof(each) : 0;
#pragma omp parallel
#pragma omp single
    for (int i = 0; i < n; i++) {
#pragma omp task shared(sum)
        {
            double until = now() + milliseconds;
            while (now() < until) {}
#pragma omp atomic
            sum++;
        }
    }
    return sum;
}
