/* Replays issue 54 of PTI: two threads, ten kernels each, copies before the first one's; the record of
 * id 16 lies in the buffer of the other thread, which is delivered first. Then what else went wrong. */
#define _GNU_SOURCE
#include "fake_pti.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static void *const queues[2] = {(void *)0x30e63c0, (void *)0x7f5438017ae0};
/* Of ids 1 to 33: whose they are. */
static int owner(int id) { return id == 15 || id == 18 || (id >= 20 && id <= 30 && id % 2 == 0) || id == 32 || id == 33; }
static int is_copy(int id) { return id <= 13; }

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn = PTHREAD_COND_INITIALIZER;
static int next = 1;
static uint32_t tids[2];

static void *work(void *number) {
    int own = (int)(intptr_t)number;
    pthread_mutex_lock(&lock);
    tids[own] = (uint32_t)syscall(SYS_gettid);
    while (next <= 33) {
        if (owner(next) != own) { pthread_cond_wait(&turn, &lock); continue; }
        int id = next++;
        uint64_t append = fake_append(NULL, queues[own], (uint64_t)id, "kernel", !is_copy(id), 0);
        uint64_t start = fake_now() + 1000, end = start + 500;
        int to = id == 16 ? 1 : own;
        if (is_copy(id)) fake_copy(to, queues[own], (uint64_t)id, id % 2, tids[own], append, start, end);
        else fake_kernel(to, queues[own], (uint64_t)id, "kernel", tids[own], append, append + 200, start, end);
        fake_call(own, 1, tids[own], (uint32_t)id, append - 50, append + 50);
        while (fake_now() < end) {}
        pthread_cond_broadcast(&turn);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void faults(void) {
    void *queue = (void *)0x99;
    uint32_t self = (uint32_t)syscall(SYS_gettid);
    uint64_t append = fake_append(NULL, queue, 40, "long", 1, 0);
    /* Far enough ahead that a thread that is put off the CPU still appends what follows before. */
    uint64_t start = append + 200000000;
    fake_kernel(2, queue, 40, "long", self, append, start - 10, start, start + 50000);
    /* Its clock was mapped anew: it starts before its predecessor ends, and when it was submitted. */
    append = fake_append(NULL, queue, 41, "early", 1, 0);
    fake_kernel(2, queue, 41, "early", self, append, start + 40000, start + 40000, start + 60000);
    /* A flush takes the buffer away while the record is put in. */
    fake_append(NULL, queue, 42, "gone", 1, 0);
    fake_append(NULL, queue, 43, "refused", 1, 0x70000001);
    append = fake_append(NULL, queue, 44, "fill", 0, 0);
    fake_fill(2, queue, 44, self, append, start + 70000, start + 71000);
    fake_deliver(2, 1);
    /* A recorded list without a queue, executed three times. */
    append = fake_append((void *)0x11, NULL, 50, "recorded", 1, 0);
    for (int execution = 0; execution < 3; execution++)
        fake_kernel(2, queue, 50, "recorded", self, append, start + 80000 + execution * 2000, start + 80500 + execution * 2000, start + 81500 + execution * 2000);
    fake_overhead(2, self, append, append + 700);
    fake_wait(2, queue, self, append + 800, append + 2000);
    while (fake_now() < start + 100000) {}
}

/* A recorded list that is executed again and again; the program waits for the queue each time. */
static void rounds(void) {
    void *queue = (void *)0x77;
    uint32_t self = (uint32_t)syscall(SYS_gettid);
    uint64_t append = fake_append((void *)0x11, NULL, 60, "recorded", 1, 0);
    for (int round = 0; round < 4; round++) {
        uint64_t start = fake_now();
        /* Newest first, in two threads' buffers. */
        for (int place = 9; place >= 0; place--)
            fake_kernel(2 + place % 2, queue, 60, "recorded", self, append, start - 10, start + (uint64_t)place * 1000, start + (uint64_t)place * 1000 + 900);
        usleep(5000);
        fake_wait(2, queue, self, fake_now() - 100, fake_now());
        fake_deliver(3, 0);
        fake_deliver(2, 0);
        usleep(600000);
    }
}

int main(int count, char **arguments) {
    if (count > 1 && strcmp(arguments[1], "old") == 0) fake_without_callbacks();
    fake_no_flush(1);
    pthread_t threads[2];
    for (intptr_t thread = 0; thread < 2; thread++) pthread_create(&threads[thread], NULL, work, (void *)thread);
    for (int thread = 0; thread < 2; thread++) pthread_join(threads[thread], NULL);
    fake_deliver(1, 0); /* the second thread's buffer first, with the foreign record in it */
    fake_deliver(0, 0);
    if (count > 1 && strcmp(arguments[1], "faults") == 0) faults();
    if (count > 1 && strcmp(arguments[1], "rounds") == 0) rounds();
    fake_no_flush(0);
    puts("33 operations");
    return 0;
}
