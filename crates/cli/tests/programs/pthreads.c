/* Threads outside OpenMP: two that never touch it, two that run regions of their own, then the main
   thread: 3 x 10 tasks. */
#include "tasks.h"
#include <pthread.h>
static void *with_regions(void *unused)
{
    run_tasks(10);
    return unused;
}
static void *without(void *unused)
{
    usleep(1000);
    return unused;
}
int main(void)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], 0, i % 2 ? with_regions : without, 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], 0);
    run_tasks(10);
    puts("joined");
    return 0;
}
