/* Rounds of a task that two others wait for, so that a worker is idle for its data: a tile of a static array, memory
 * from the heap with a name, memory from the heap without one, a scalar. */
#include <stdio.h>
#include <stdlib.h>
#include <taskscope.h>
#include <time.h>

static void cost(long us)
{
    struct timespec time = { 0, us * 1000 };
    clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
}

static double A[3][3][16];
double total;

int main(void)
{
    double *halo[2] = { malloc(4096), malloc(4096) };
    double *plain = malloc(64);
    for (int i = 0; i < 2; i++) {
        char name[32];
        snprintf(name, sizeof name, "halo[%d]", i);
        taskscope_name_data(halo[i], 4096, name);
    }
    #pragma omp parallel num_threads(2)
    #pragma omp single
    for (int round = 0; round < 12; round++) {
        #pragma omp task depend(in: total) depend(out: A[1][2])
        cost(4000);
        for (int i = 0; i < 2; i++) {
            #pragma omp task depend(in: A[1][2]) depend(out: halo[i][7])
            cost(1000);
        }
        #pragma omp task depend(in: halo[0][7], halo[1][7]) depend(out: plain[0])
        cost(4000);
        for (int i = 0; i < 2; i++) {
            #pragma omp task depend(in: plain[0]) depend(out: A[0][i])
            cost(1000);
        }
        #pragma omp task depend(in: A[0][0], A[0][1]) depend(out: total)
        cost(1000);
    }
    return 0;
}
