/* Each thread of a region adds to its own sum. */
#include <stdio.h>

int omp_get_thread_num(void);
static long sums[2];

int main(void) {
#pragma omp parallel num_threads(2)
    sums[omp_get_thread_num()] += 5;
    puts("done");
    return 28;
}
