/* Regions, tasks, locks and barriers for SECONDS; prints the most memory that the process had, in KiB. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double sum;

int main(int argc, char **argv) {
    double until = omp_get_wtime() + (argc > 1 ? atof(argv[1]) : 1);
    while (omp_get_wtime() < until) {
#pragma omp parallel
        {
#pragma omp for schedule(dynamic, 8)
            for (int i = 0; i < 256; i++)
#pragma omp atomic
                sum += i;
#pragma omp critical
            sum += 1;
#pragma omp single
            for (int i = 0; i < 64; i++) {
#pragma omp task
#pragma omp atomic
                sum += 1;
            }
        }
    }
    char line[256];
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status))
        if (!strncmp(line, "VmHWM:", 6)) printf("%ld\n", atol(line + 6));
    return sum < 0;
}
