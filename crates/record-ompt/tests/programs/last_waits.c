/* Calls the functions of last_waits_library.c, directly and through a pointer. */
#include <omp.h>

void settle(void), line_up(void), either(int, volatile int *), further(void), take(omp_lock_t *);

static void (*volatile by_pointer)(void) = line_up;
static volatile int met;
static volatile long steps;

int main(void) {
    omp_lock_t lock;
    omp_init_lock(&lock);
#pragma omp parallel num_threads(2) /* main */
    {
        line_up();
        if (omp_get_thread_num() == 0) {
#pragma omp task /* task */
            steps = steps + 1;
            settle();
        }
        further();
        either(1, &met);
        either(0, &met);
        by_pointer(); /* pointer */
        take(&lock);
        omp_unset_lock(&lock);
    }
    omp_destroy_lock(&lock);
    return 0;
}
