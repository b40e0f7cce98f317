/* Functions that end with a construct: compilers jump into the runtime instead of calling it. */
#include <math.h>
#include <omp.h>
#include <stdio.h>

static double field[200000];
static omp_lock_t guard;

__attribute__((noinline)) void smooth(void) {
#pragma omp parallel for schedule(dynamic, 5000)
    for (int i = 0; i < 200000; i++) field[i] = sqrt(field[i] + i);
}

__attribute__((noinline)) void through_another(void) { smooth(); }

__attribute__((noinline)) void release(void) { omp_unset_lock(&guard); }

__attribute__((noinline)) void sharpen(int twice) {
    if (twice) {
#pragma omp parallel for schedule(dynamic, 5000)
        for (int i = 0; i < 200000; i++) field[i] = field[i] * 1.5;
    } else {
#pragma omp parallel for schedule(dynamic, 5000)
        for (int i = 0; i < 200000; i++) field[i] = field[i] * 0.5;
    }
}

int main(void) {
    omp_init_lock(&guard);
    for (int round = 0; round < 20; round++) {
        omp_set_lock(&guard);
        through_another();
        release();
        sharpen(round % 2);
    }
    printf("%g\n", field[7]);
    return 0;
}
