/* A thread is cancelled at the moment at which the recorder's signal comes: it blocks all signals, those of the C library
 * too, until both are pending, and takes both at once. Prints that the thread has ended so, and its cleanup has run. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CANCEL = 32 };

static int is_blocked, is_cleaned;

static uint64_t bit(int number) { return (uint64_t)1 << (number - 1); }

static void set_mask(uint64_t mask) { syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, sizeof mask); }

static uint64_t pending(void) {
    uint64_t set = 0;
    syscall(SYS_rt_sigpending, &set, sizeof set);
    return set;
}

static void clean(void *nothing) {
    (void)nothing;
    is_cleaned = 1;
}

static void *cancelled(void *nothing) {
    pthread_cleanup_push(clean, NULL);
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    set_mask(~(uint64_t)0);
    __atomic_store_n(&is_blocked, 1, __ATOMIC_SEQ_CST);
    while (!(pending() & bit(CANCEL)) || !(pending() & ~bit(CANCEL))) {}
    set_mask(0);
    pthread_cleanup_pop(0);
    return nothing;
}

int main(void) {
    pthread_t thread;
    void *result = NULL;
    for (int round = 0; round < 20; round++) {
        is_blocked = is_cleaned = 0;
        if (pthread_create(&thread, NULL, cancelled, NULL)) return 2;
        while (!__atomic_load_n(&is_blocked, __ATOMIC_SEQ_CST)) usleep(100);
        pthread_cancel(thread);
        pthread_join(thread, &result);
        if (result != PTHREAD_CANCELED || !is_cleaned) return 3;
    }
    puts("cancelled");
    return 0;
}
