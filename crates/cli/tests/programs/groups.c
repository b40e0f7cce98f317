/* Tasks for which a taskgroup waits, though others than the waiting thread have created them: those of a taskloop so large that
   LLVM's runtime divides it among tasks of its own, and a task of a task that is over long before. */
#include "virtual_time.h"

static volatile double sink;

static void work(double milliseconds) { VIRTUAL_WORK((uint64_t)(milliseconds * 1e6)); }

__attribute__((noinline)) void item(int number, int count) {
    work(number == count - 1 ? 60 : 1);
    sink += 1;
}

__attribute__((noinline)) void loop(int count) {
#pragma omp taskloop grainsize(1)
    for (int i = 0; i < count; i++) item(i, count);
    sink += 1;
}

__attribute__((noinline)) void leaf(void) {
    work(60);
    sink += 1;
}

__attribute__((noinline)) void middle(void) {
#pragma omp task
    leaf();
    sink += 1;
}

__attribute__((noinline)) void group(void) {
#pragma omp taskgroup
    {
#pragma omp task
        middle();
        work(5);
    }
    sink += 1;
}

int main(void) {
#pragma omp parallel num_threads(2)
#pragma omp single
    for (int round = 0; round < 3; round++) {
        work(1); /* The other one sleeps by now, and is woken. */
        loop(60);
        group();
    }
    return sink < 0;
}
