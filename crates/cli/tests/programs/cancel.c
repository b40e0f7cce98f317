/* Cancels a loop and a taskgroup (with OMP_CANCELLATION=true). */
#include "tasks.h"
int main(void)
{
#pragma omp parallel num_threads(2)
    {
#pragma omp for
        for (int i = 0; i < 1000; i++) {
            if (i == 10) {
#pragma omp cancel for
            }
            sink++;
        }
#pragma omp single
        {
#pragma omp taskgroup
            for (int i = 0; i < 100; i++) {
#pragma omp task firstprivate(i)
                {
                    if (i == 5) {
#pragma omp cancel taskgroup
                    }
                    sink++;
                }
            }
        }
    }
    puts("cancelled");
    return 0;
}
