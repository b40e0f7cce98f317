/* Two threads that each open a region of two, with a task in each: 4 tasks. */
#include "tasks.h"
#include <omp.h>
int main(void)
{
    int sum = 0;
    omp_set_max_active_levels(2);
#pragma omp parallel num_threads(2)
#pragma omp parallel num_threads(2)
    {
#pragma omp task shared(sum)
        {
#pragma omp atomic
            sum++;
        }
    }
    printf("%d\n", sum);
    return sum == 4 ? 0 : 1;
}
