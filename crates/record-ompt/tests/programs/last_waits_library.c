/* Waits whose calls into the runtime end their functions, which optimising compilers make jumps. Nothing else is in this
   file, so that nothing else makes it known to a recorder. Each wait's name is in a comment on its line. */
#include <omp.h>

#define APART __attribute__((noinline))

APART void settle(void) {
#pragma omp taskwait /* settle */
}

APART void line_up(void) {
#pragma omp barrier /* line_up */
}

/* Two ways to leave for the runtime, of which a return address does not tell one. */
APART void either(int first, volatile int *met) {
    if (first) {
        *met = 1;
#pragma omp barrier
    } else {
        *met = 2;
#pragma omp taskwait
    }
}

/* Waits in a function that this one jumps to. */
APART void further(void) { line_up(); }

APART void take(omp_lock_t *lock) { omp_set_lock(lock); /* take */ }
