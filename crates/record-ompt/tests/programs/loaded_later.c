/* A library that a program loads while it runs. */
#include <math.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

double loaded_later(double milliseconds) {
    double sum = 0, until = now() + milliseconds;
    while (now() < until)
        for (int i = 0; i < 1000; i++) sum += sqrt(i + sum);
    return sum;
}
