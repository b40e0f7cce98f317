/* A second thread that sleeps, calls the runtime, forks a team or creates a task, by the argument. */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "work.h"

static const char *mode;
static int sum;
static void *further(void *unused) {
    if (!strcmp(mode, "sleeps")) usleep(50000);
    if (!strcmp(mode, "calls")) {
#pragma omp critical
        sum++;
    }
    if (!strcmp(mode, "forks") || !strcmp(mode, "alone")) {
#pragma omp parallel
        WORK_NS(10 * MS);
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
        WORK_NS(20 * MS);
    }
    WORK_NS(20 * MS);
    pthread_join(thread, NULL);
    return 0;
}
