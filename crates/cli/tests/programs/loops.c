/* Loops that compilers rotate, nest and enter in their middle. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

static double level, limit = 1e9;
static int rounds, wanted = 20;

static void work(double seconds) {
    double end = omp_get_wtime() + seconds;
    while (omp_get_wtime() < end) /* burns */
        ;
}

__attribute__((noinline)) static void sweep(void) {
#pragma omp parallel
    work(0.004);
    level += 1;
    rounds++;
}

/* Inlined: its lines are before the loop that calls it. */
static inline __attribute__((always_inline)) double damp(double factor) {
    if (factor > 0.5)
        factor *= 0.98;
    return factor < 0.7 ? 1 : factor;
}

__attribute__((noinline)) static double march(int verbose) {
    double factor = 1, *value = &level;
    int *count = &rounds;
    while (*value < limit && *count < wanted) { /* the rotated loop */
        factor = damp(factor);
        sweep();
        if (verbose && *count % 7 == 0)
            printf("round %d\n", *count);
    }
    return factor;
}

__attribute__((noinline)) static void relax(int side) {
    for (int i = 0; i < side; i++) {           /* the outer loop */
        for (int j = i; j < side; j++) {       /* the inner loop */
            if ((i + j) % 5 == 4)
                continue;
            sweep();
        }
    }
}

__attribute__((noinline)) static void touch(int *cell) {
    double end = omp_get_wtime() + 0.001;
    while (omp_get_wtime() < end)
        ++*cell;
}

__attribute__((noinline)) static void share(void) {
    int cells[64] = {0};
#pragma omp parallel for schedule(dynamic, 4)
    for (int i = 0; i < 64; i++)
        touch(&cells[i]);
    level += cells[0] > 0;
}

int main(int argc, char **argv) {
    if (argc > 1)
        wanted = atoi(argv[1]);
    double factor = march(argc > 2);
    share();
    relax(argc + 4); /* not unrolled: its trips are not known */
    printf("%d %g\n", rounds, factor);
    return 0;
}
