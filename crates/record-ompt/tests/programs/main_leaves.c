/* The initial thread leaves first; the process ends with its last thread. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void at_exit(void) { puts("exit"); }

static void *goes_on(void *nothing) {
    struct timespec t = {0, 200000000};
    nanosleep(&t, NULL);
    puts("last");
    return nothing;
}

int main(void) {
    pthread_t thread;
    atexit(at_exit);
#pragma omp parallel num_threads(1)
    pthread_create(&thread, NULL, goes_on, NULL);
    pthread_exit(NULL);
}
