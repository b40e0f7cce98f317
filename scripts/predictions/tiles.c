/* A tiled factorisation whose task bodies sleep their cost, so that many workers run on few CPUs and the
 * runtime's own cost stays real: tiles NT POTRF TRSM SYRK GEMM FETCH (microseconds a task).
 * FETCH is the time of a link: each panel is fetched before it is used, by a task that sleeps so long. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void cost(long us) {
    struct timespec t = { us / 1000000, us % 1000000 * 1000 };
    if (us > 0) clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
}

static char *at;
static int nt;
#define TILE(i, j) at[(i) * nt + (j)]

static void potrf(int k, long us) {
    #pragma omp task depend(inout: TILE(k, k)) firstprivate(us)
    cost(us);
}

static void trsm(int i, int k, long us) {
    #pragma omp task depend(in: TILE(k, k)) depend(inout: TILE(i, k)) firstprivate(us)
    cost(us);
}

static void fetch(int i, int k, long us) {
    #pragma omp task depend(inout: TILE(i, k)) firstprivate(us)
    cost(us);
}

static void syrk(int i, int k, long us) {
    #pragma omp task depend(in: TILE(i, k)) depend(inout: TILE(i, i)) firstprivate(us)
    cost(us);
}

static void gemm(int i, int j, int k, long us) {
    #pragma omp task depend(in: TILE(i, k), TILE(j, k)) depend(inout: TILE(i, j)) firstprivate(us)
    cost(us);
}

int main(int argc, char **argv) {
    if (argc != 7) return fprintf(stderr, "usage: tiles NT POTRF TRSM SYRK GEMM FETCH\n"), 2;
    nt = atoi(argv[1]);
    long c[5];
    for (int i = 0; i < 5; i++) c[i] = atol(argv[i + 2]);
    at = calloc((size_t)nt, (size_t)nt);
    #pragma omp parallel
    #pragma omp single
    for (int k = 0; k < nt; k++) {
        potrf(k, c[0]);
        for (int i = k + 1; i < nt; i++) trsm(i, k, c[1]), fetch(i, k, c[4]);
        for (int i = k + 1; i < nt; i++) {
            syrk(i, k, c[2]);
            for (int j = k + 1; j < i; j++) gemm(i, j, k, c[3]);
        }
    }
    free(at);
    return 0;
}
