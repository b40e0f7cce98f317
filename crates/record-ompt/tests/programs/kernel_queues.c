/* Waits for the kernel's queues by libaio, liburing and by system calls' numbers. Says which waits a signal has broken off.
   Built with -DWAITS it is a library; else a program, which has one such library within (-DWITHIN) or opens the one that it is
   given, for nobody else to see. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

int waits(void);

#if defined WAITS || defined WITHIN
#include <libaio.h>
#include <liburing.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ROUNDS = 5, MS = 1000000 };
static int wrong;

static void check(const char *what, int result, int wanted) {
    if (result != wanted) printf("%s: %d (%s)\n", what, result, strerror(-result));
    wrong += result != wanted;
}

static int by_number(long result) { return result < 0 ? -errno : (int)result; }

/* A time after which an entry comes. */
static void submit_timeout(struct io_uring *ring) {
    static struct __kernel_timespec time = {.tv_nsec = 20 * MS};
    struct io_uring_sqe *entry = io_uring_get_sqe(ring);
    io_uring_prep_timeout(entry, &time, 0, 0);
}

/* Takes the entry that a wait has brought. */
static void take(struct io_uring *ring) {
    struct io_uring_cqe *entry;
    int peeked = io_uring_peek_cqe(ring, &entry);
    check("io_uring_peek_cqe", peeked, 0);
    if (peeked < 0 && io_uring_wait_cqe(ring, &entry) < 0) return;
    check("time", entry->res, -ETIME);
    io_uring_cqe_seen(ring, entry);
}

int waits(void) {
    struct timespec time = {.tv_nsec = 20 * MS};
    struct __kernel_timespec ring_time = {.tv_nsec = 20 * MS};
    io_context_t context = 0;
    struct io_event event;
    check("io_setup", io_setup(1, &context), 0);
    struct io_uring ring;
    int made = io_uring_queue_init(8, &ring, 0);
    if (made == -ENOSYS || made == -EPERM) printf("no io_uring: %s\n", strerror(-made));
    for (int i = 0; i < ROUNDS; i++) {
        sigset_t mask;
        sigemptyset(&mask);
        check("io_getevents", io_getevents(context, 1, 1, &event, &time), 0);
        check("io_pgetevents", io_pgetevents(context, 1, 1, &event, &time, &mask), 0);
        check("number io_getevents", by_number(syscall(SYS_io_getevents, context, 1L, 1L, &event, &time)), 0);
        check("number nanosleep", by_number(syscall(SYS_nanosleep, &time, NULL)), 0);
        check("number ppoll", by_number(syscall(SYS_ppoll, NULL, 0L, &time, NULL, 0L)), 0);
        check("number futex", by_number(syscall(SYS_futex, &wrong, 1L, 0L)), 0);
        if (made < 0) continue;
        struct io_uring_cqe *entry;
        submit_timeout(&ring);
        check("io_uring_submit", io_uring_submit(&ring), 1);
        check("io_uring_wait_cqe", io_uring_wait_cqe(&ring, &entry), 0);
        take(&ring);
        submit_timeout(&ring);
        check("io_uring_submit_and_wait", io_uring_submit_and_wait(&ring, 1), 1);
        take(&ring);
        check("io_uring_wait_cqe_timeout", io_uring_wait_cqe_timeout(&ring, &entry, &ring_time), -ETIME);
        check("io_uring_wait_cqes", io_uring_wait_cqes(&ring, &entry, 1, &ring_time, &mask), -ETIME);
        submit_timeout(&ring);
        check("io_uring_submit", io_uring_submit(&ring), 1);
        check("number io_uring_enter",
              by_number(syscall(SYS_io_uring_enter, ring.ring_fd, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0)), 0);
        take(&ring);
    }
    return wrong;
}
#endif

#ifndef WAITS
int main(int count, char **arguments) {
#ifdef WITHIN
    int (*all)(void) = waits;
#else
    void *library = count > 1 ? dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    int (*all)(void) = library ? (int (*)(void))dlsym(library, "waits") : NULL;
#endif
    if (!all) return puts(dlerror()), 2;
    if (all() == 0) puts("as without samples");
    return 0;
}
#endif
