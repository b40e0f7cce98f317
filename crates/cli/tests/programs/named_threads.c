/* Threads that name themselves: at their start, in a region, and with bytes that a terminal acts on. */
#define _GNU_SOURCE
#include <omp.h>
#include <pthread.h>
#include <stdio.h>

#include "work.h"

static void work(void) { WORK_NS(10 * MS); }

static void *solve(void *unused) {
    (void)unused;
    pthread_setname_np(pthread_self(), "outer-solver");
#pragma omp parallel num_threads(2)
    {
        work();
        if (omp_get_thread_num() == 1)
            pthread_setname_np(pthread_self(), "a\033[31m<b>");
    }
    return NULL;
}

int main(void) {
    pthread_t thread;
#pragma omp parallel num_threads(2)
    work();
    pthread_create(&thread, NULL, solve, NULL);
    pthread_join(thread, NULL);
    /* A name that comes last counts. */
    pthread_setname_np(pthread_self(), "early");
#pragma omp parallel num_threads(2)
    work();
    pthread_setname_np(pthread_self(), "steering");
    return 0;
}
