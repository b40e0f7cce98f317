/* Constructs whose calls into the runtime end their functions, which optimising compilers make jumps. The functions are
   called through pointers from one place, so that all have one return address. With `nested`, regions end the bodies of
   others. Each construct's name is in a comment on its line. */
#include <omp.h>
#include <string.h>

static volatile long steps;

__attribute__((noinline)) static void work(int count) {
    for (int i = 0; i < count; i++) steps = steps + 1;
}

__attribute__((noinline)) static void first(void) {
#pragma omp parallel num_threads(2) /* first */
    work(10);
}

__attribute__((noinline)) static void second(void) {
#pragma omp parallel num_threads(2) /* second */
    work(20);
}

__attribute__((noinline)) static void third(void) {
#pragma omp task /* third */
    work(30);
}

__attribute__((noinline)) static void fourth(void) {
#pragma omp task /* fourth */
    work(40);
}

__attribute__((noinline)) static void fifth(void) {
#pragma omp parallel num_threads(2) /* fifth */
    {
        work(50);
#pragma omp parallel num_threads(2) /* sixth */
        work(60);
    }
}

__attribute__((noinline)) static void seventh(void) {
#pragma omp parallel num_threads(2) /* seventh */
    {
        work(70);
#pragma omp task /* eighth */
        work(80);
    }
}

static inline __attribute__((always_inline)) void copied(int count) {
#pragma omp parallel num_threads(2) /* copied */
    work(count);
}

__attribute__((noinline)) static void one_copy(void) {
    copied(90);
    copied(91);
}

static void (*const volatile regions[])(void) = {first, second, first, one_copy};
static void (*const volatile tasks[])(void) = {third, fourth, third};

int main(int count, char **arguments) {
    if (count > 1 && !strcmp(arguments[1], "levels")) omp_set_max_active_levels(2);
    for (int i = 0; i < 4; i++) regions[i]();
#pragma omp parallel num_threads(2) /* main */
#pragma omp single
    for (int i = 0; i < 3; i++) tasks[i]();
    fifth();
    seventh();
    copied(92);
    return 0;
}
