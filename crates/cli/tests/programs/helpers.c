/* Functions that wait through the same helpers: each wait is at the path that it was made by, each hold at its holder's. */
#include <omp.h>
#include <unistd.h>

#include "virtual_time.h"

static omp_lock_t lock;
static volatile int held;

#define KEEP __asm__ volatile("")

static void work(double milliseconds) { VIRTUAL_WORK((uint64_t)(milliseconds * 1e6)); }

__attribute__((noinline)) static void take(void) {
    omp_set_lock(&lock);
    KEEP;
}

__attribute__((noinline)) static void holder(void) {
    take();
    held = 1;
    work(20);
    omp_unset_lock(&lock);
    KEEP;
}

__attribute__((noinline)) static void waiter(void) {
    while (!held) usleep(100);
    take();
    omp_unset_lock(&lock);
    KEEP;
}

__attribute__((noinline)) static void meet(void) {
#pragma omp barrier
    KEEP;
}

__attribute__((noinline)) static void first_phase(int late) {
    if (late) work(20);
    meet();
    KEEP;
}

__attribute__((noinline)) static void second_phase(int late) {
    if (late) work(40);
    meet();
    KEEP;
}

__attribute__((noinline)) static void wait_for_children(void) {
#pragma omp taskwait
    KEEP;
}

static volatile int begun;

/* The other thread has the child. */
__attribute__((noinline)) static void child_elsewhere(double milliseconds) {
    begun = 0;
    work(1); /* The other one sleeps by now, and is woken. */
#pragma omp task
    {
        begun = 1;
        work(milliseconds);
        KEEP;
    }
    while (!begun) usleep(100);
    KEEP;
}

__attribute__((noinline)) static void short_child(void) {
    child_elsewhere(20);
    wait_for_children();
    KEEP;
}

__attribute__((noinline)) static void long_child(void) {
    child_elsewhere(40);
    wait_for_children();
    KEEP;
}

int main(void) {
    omp_init_lock(&lock);
    for (int round = 0; round < 3; round++) {
        held = 0;
#pragma omp parallel num_threads(2)
        {
            int first = omp_get_thread_num() == 0;
            /* Who waits for a lock has come to that code before the holder in the first round, and after it in others. */
            if (first) holder();
            else waiter();
            first_phase(first);
            second_phase(!first);
            if (first) {
                short_child();
                long_child();
            }
            meet();
        }
    }
    return 0;
}
