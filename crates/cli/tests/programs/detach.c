/* A detached task that ends when another fulfils its event: 2 tasks. */
#include "tasks.h"
#include <omp.h>
int main(void)
{
    int done = 0;
#pragma omp parallel num_threads(2)
#pragma omp single
    {
        omp_event_handle_t event;
#pragma omp task detach(event)
        {
#pragma omp task firstprivate(event)
            omp_fulfill_event(event);
        }
#pragma omp taskwait
        done = 1;
    }
    printf("%d\n", done);
    return 0;
}
