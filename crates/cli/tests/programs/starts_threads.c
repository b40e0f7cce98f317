/* Starts threads until none can be started, behind a region's; prints their number. With -DSMALL_STACKS more than 1,000. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#ifdef SMALL_STACKS
enum { MAX_THREADS = 4000 };
#else
enum { MAX_THREADS = 1000 };
#endif

static void *wait_on(void *argument) {
    pause();
    return argument;
}

int main(void) {
    int count = 0;
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
#ifdef SMALL_STACKS
    pthread_attr_setstacksize(&attributes, 32768);
#else
#pragma omp parallel reduction(+ : count)
    count++;
#endif
    usleep(100000);
    while (count < MAX_THREADS && !pthread_create(&thread, &attributes, wait_on, 0)) count++;
    printf("%d\n", count);
    fflush(stdout);
    _exit(6);
}
