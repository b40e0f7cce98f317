// The initial thread sleeps between regions. Prints the time that it slept, by its clock, nanoseconds.
#include <omp.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

int main(void) {
    long slept = 0;
    for (int round = 0; round < 10; round++) {
#pragma omp parallel num_threads(2)
        for (long end = now() + 5000000; now() < end;) {
        }
        long begin = now();
        usleep(50000);
        slept += now() - begin;
    }
    printf("%ld\n", slept);
}
