/* What signals could change: calls that wait, calls that move much, an alternate signal stack, threads with small stacks.
   Says which of them are not as they are without signals. */
#define _GNU_SOURCE
#include <aio.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include "work.h"

enum { MUCH = 1 << 20, PART = 1 << 12 };
static int ends[2], sockets[2], wrong;

static void check(const char *what, int is_right) {
    if (!is_right) printf("%s: %s\n", what, strerror(errno));
    wrong += !is_right;
}

static void *write_late(void *unused) {
    usleep(100000);
    check("write", write(ends[1], "", 1) == 1);
    return unused;
}

static void *read_slowly(void *unused) {
    static char data[1 << 16];
    while (read(ends[0], data, sizeof data) > 0) usleep(3000);
    return unused;
}

static void *send_slowly(void *unused) {
    static char data[PART];
    for (int i = 0; i < 32; i++) {
        usleep(3000);
        check("send", send(sockets[1], data, PART, 0) == PART);
    }
    shutdown(sockets[1], SHUT_WR);
    return unused;
}

static void *works(void *unused) {
    WORK_NS(30 * MS);
    return unused;
}

static void in_handler(int signal) {
    (void)signal;
    WORK_NS(100 * MS);
}

int main(void) {
    static char data[MUCH];
    struct timespec nap = {0, 100000000}, until;
    struct epoll_event event;
    struct iovec parts[2] = {{data, MUCH}, {data, MUCH}};
    pthread_t thread;
    pthread_attr_t attributes;
    sem_t semaphore;

    check("pipe", pipe(ends) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
    pthread_create(&thread, NULL, write_late, NULL);
    check("read", read(ends[0], data, 1) == 1);
    pthread_join(thread, NULL);
    pthread_create(&thread, NULL, read_slowly, NULL);
    check("large write", write(ends[1], data, MUCH) == MUCH);
    check("writev", writev(ends[1], parts, 2) == 2 * MUCH);
    close(ends[1]);
    pthread_join(thread, NULL);
    pthread_create(&thread, NULL, send_slowly, NULL);
    check("recv", recv(sockets[0], data, 32 * PART, MSG_WAITALL) == 32 * PART);
    pthread_join(thread, NULL);

    check("thrd_sleep", thrd_sleep(&nap, NULL) == 0);
    check("clock_nanosleep", clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL) == 0);
    sem_init(&semaphore, 0, 0);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 1;
    check("sem_timedwait", sem_timedwait(&semaphore, &until) != 0 && errno == ETIMEDOUT);
    int epoll = epoll_create1(0);
    check("epoll_wait", epoll_wait(epoll, &event, 1, 100) == 0);
    check("epoll_pwait2", epoll_pwait2(epoll, &event, 1, &nap, NULL) == 0 || errno == ENOSYS);
    /* Of how many the compiler cannot know: its checked variant is called. */
    volatile int none = 0;
    struct pollfd one[1];
    check("poll", poll(one, none, 100) == 0);
    check("ppoll", ppoll(one, none, &nap, NULL) == 0);

    /* Nothing comes before the time is over. */
    int quiet[2];
    check("pipe", pipe(quiet) == 0);
    struct aiocb operation = {.aio_fildes = quiet[0], .aio_buf = data, .aio_nbytes = 1};
    const struct aiocb *list[1] = {&operation};
    check("aio_read", aio_read(&operation) == 0);
    check("aio_suspend", aio_suspend(list, 1, &nap) != 0 && errno == EAGAIN);
    close(quiet[1]);
    check("aio_suspend to the end", aio_suspend(list, 1, NULL) == 0);
    struct timeval limit = {0, 100000};
    check("socketpair", socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
    setsockopt(sockets[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(sockets[0], SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    check("recv until a timeout", recv(sockets[0], data, 1, 0) < 0 && errno == EAGAIN);
    check("read until a timeout", read(sockets[0], data, 1) < 0 && errno == EAGAIN);
    while (send(sockets[0], data, PART, 0) > 0) {}
    check("send until a timeout", errno == EAGAIN);

    enum { ROOM = 1 << 16, ALTERNATE = 8192 };
    char *room = mmap(NULL, 2 * ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    stack_t alternate = {.ss_sp = room + ROOM, .ss_size = ALTERNATE};
    struct sigaction action = {.sa_handler = in_handler, .sa_flags = SA_ONSTACK};
    sigaltstack(&alternate, NULL);
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    for (int i = 0; i < ROOM; i++)
        if (room[i]) {
            check("below the alternate stack", 0);
            break;
        }
    pthread_attr_init(&attributes);
    for (int kilobytes = 16; kilobytes <= 128; kilobytes *= 2) {
        pthread_attr_setstacksize(&attributes, kilobytes * 1024);
        check("thread", pthread_create(&thread, &attributes, works, NULL) == 0);
        pthread_join(thread, NULL);
    }
#pragma omp parallel
    works(NULL);
    if (!wrong) puts("as without samples");
    return 0;
}
