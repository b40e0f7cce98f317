/* 1000 parallel loops of a few hundred microseconds: about 20 events each with two threads. */
#include <math.h>
#include <stdio.h>

#define N 150000
static double a[N];

int main(void) {
    for (int round = 0; round < 1000; round++) {
#pragma omp parallel for schedule(static)
        for (int i = 0; i < N; i++) a[i] = sqrt(a[i] * 0.999 + i) / sqrt(1.0 + round + a[i]);
    }
    printf("%g\n", a[N / 2]);
    return 0;
}
