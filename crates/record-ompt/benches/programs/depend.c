/* 82 000 tasks of about eight microseconds in 64 chains of dependences. */
#include <stdio.h>

#define CHAINS 64
static double chain[CHAINS][8];

static double work(double x) {
    for (int i = 0; i < 4700; i++) x = x * 1.0000001 + 1e-9;
    return x;
}

int main(void) {
#pragma omp parallel
#pragma omp single
    for (int step = 0; step < 82000; step++) {
        double *mine = chain[step % CHAINS], *next = chain[(step * 7 + 1) % CHAINS];
#pragma omp task depend(inout : mine[0]) depend(in : next[0]) firstprivate(mine)
        mine[0] = work(mine[0]);
    }
    printf("%g\n", chain[3][0]);
    return 0;
}
