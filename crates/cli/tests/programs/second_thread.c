/* A second thread that sleeps, calls the runtime, forks a team or creates a task, by the argument. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "work.h"

static const char *mode;
static int sum;
static atomic_int teams;

/* In mode forks, both teams exist at once: the runtime gives threads of a team that has ended to the next one. */
static void wait_for_both_teams(void) {
    if (strcmp(mode, "forks")) return;
#pragma omp masked
    atomic_fetch_add(&teams, 1);
    while (atomic_load(&teams) < 2) sched_yield();
}

static void *further(void *unused) {
    if (!strcmp(mode, "sleeps")) usleep(50000);
    if (!strcmp(mode, "calls")) {
#pragma omp critical
        sum++;
    }
    if (!strcmp(mode, "forks") || !strcmp(mode, "alone")) {
#pragma omp parallel
        {
            wait_for_both_teams();
            WORK_NS(10 * MS);
        }
    }
    if (!strcmp(mode, "creates")) {
#pragma omp task
        WORK_NS(10 * MS);
    }
    return unused;
}
int main(int count, char **arguments) {
    pthread_t thread;
    mode = arguments[1];
#pragma omp critical
    sum++;
    if (!strcmp(mode, "nobody")) {
        WORK_NS(20 * MS);
        return 0;
    }
    pthread_create(&thread, NULL, further, NULL);
    if (strcmp(mode, "alone")) {
#pragma omp parallel
        {
            wait_for_both_teams();
            WORK_NS(20 * MS);
        }
    }
    WORK_NS(20 * MS);
    pthread_join(thread, NULL);
    return 0;
}
