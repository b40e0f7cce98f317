/* All signals are blocked, and threads read them: by `signalfd`, and by `sigtimedwait`. Prints those that they get. */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "work.h"

static volatile int got[65], is_over, sink;

static void *reads(void *nothing) {
    sigset_t all;
    sigfillset(&all);
    struct pollfd file = {signalfd(-1, &all, SFD_NONBLOCK), POLLIN, 0};
    struct signalfd_siginfo info;
    while (!is_over)
        if (poll(&file, 1, 20) > 0 && read(file.fd, &info, sizeof info) == sizeof info) got[info.ssi_signo]++;
    return nothing;
}

static void *waits(void *nothing) {
    sigset_t all;
    sigfillset(&all);
    struct timespec limit = {0, 20000000};
    while (!is_over) {
        int number = sigtimedwait(&all, NULL, &limit);
        if (number > 0) got[number]++;
    }
    return nothing;
}

__attribute__((noinline)) void spin(void) {
    WORK_NS(200 * MS);
    sink += 1;
}

int main(void) {
    sigset_t all;
    pthread_t threads[2];
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    pthread_create(&threads[0], NULL, reads, NULL);
    pthread_create(&threads[1], NULL, waits, NULL);
#pragma omp parallel num_threads(2)
    spin();
    kill(getpid(), SIGUSR1);
    struct timespec while_they_read = {0, 100000000};
    nanosleep(&while_they_read, NULL);
    is_over = 1;
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    for (int number = 1; number < 65; number++)
        if (got[number]) printf("%d %d\n", number, got[number]);
    return 0;
}
