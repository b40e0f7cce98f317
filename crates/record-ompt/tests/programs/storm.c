/* Waits of all kinds, most of them short, at one place each: none may be lost. */
#include <omp.h>
#include <stdio.h>

static long sum;

int main(void) {
    for (int round = 0; round < 2; round++) {
#pragma omp parallel
        {
            for (int i = 0; i < 300; i++) {
#pragma omp critical
                sum++;
/* LLVM's runtime divides other dynamic loops by stealing, and ended here by an assertion of its own, once (kmp_dispatch.cpp). */
#pragma omp for schedule(monotonic : dynamic, 4)
                for (int j = 0; j < 64; j++)
#pragma omp atomic
                    sum++;
            }
#pragma omp single
            for (int i = 0; i < 1000; i++) {
#pragma omp task
                {
#pragma omp task
#pragma omp atomic
                    sum++;
#pragma omp task
#pragma omp atomic
                    sum++;
#pragma omp taskwait
                }
                if (i % 100 == 0) {
#pragma omp taskwait
                }
            }
        }
    }
    printf("%d\n", sum > 0);
    return 0;
}
