/* Sleeps in code of its own: the initial thread in poll before the region and in pthread_join after it, a team's
   thread in a single construct, and two threads outside of OpenMP: one only waits for a pipe, one works a quarter of its time. */
#include <omp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
static int ends[2];
static void nap(int ms)
{
    struct timespec time = {0, ms * 1000000L};
    nanosleep(&time, 0);
}
__attribute__((noinline)) static void burn(int ms)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    double until = now.tv_sec + now.tv_nsec * 1e-9 + ms * 1e-3;
    do
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    while (now.tv_sec + now.tv_nsec * 1e-9 < until);
}
static void *waiter(void *unused)
{
    char byte;
    if (read(ends[0], &byte, 1) != 1)
        puts("no byte");
    return unused;
}
static void *worker(void *unused)
{
    for (int i = 0; i < 10; i++) {
        burn(10);
        nap(30);
    }
    return unused;
}
int main(void)
{
    pthread_t threads[2];
    if (pipe(ends) != 0)
        return 1;
    pthread_create(&threads[0], 0, waiter, 0);
    pthread_create(&threads[1], 0, worker, 0);
    poll(0, 0, 150);
#pragma omp parallel num_threads(2)
    {
#pragma omp single
        nap(150);
    }
    pthread_join(threads[1], 0);
    if (write(ends[1], "x", 1) != 1)
        return 1;
    pthread_join(threads[0], 0);
    puts("slept");
    return 0;
}
