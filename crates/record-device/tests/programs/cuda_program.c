/* A program of two threads and four streams on the imaginary device, with every fault. What it says at
 * the end is what a recorder should have seen. */
#include "fake_cupti.h"
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int operations = 200;

static void *work(void *number) {
    uintptr_t thread = (uintptr_t)number;
    for (int index = 0; index < operations; index++) {
        uintptr_t stream = 1 + thread * 2 + (uintptr_t)index % 2; /* each thread has two streams */
        if (index % 4 == 0) fake_copy(stream, 4096, 1, FAKE_FINE);
        else if (index % 4 == 1) fake_set(stream, 512, FAKE_FINE);
        else fake_launch(stream, index % 4 == 2 ? "saxpy" : "_Z6reducePfi", FAKE_FINE);
        if (index % 50 == 49) fake_deliver();
    }
    return NULL;
}

/* A capture that two further streams join by events, one of them through the other. */
static void joined_capture(void) {
    fake_begin_capture(20);
    fake_launch(20, "captured", FAKE_FINE);
    fake_record_event(1, 20);
    fake_wait_for_event(21, 1);
    fake_launch(21, "captured", FAKE_FINE);
    fake_record_event(2, 21);
    fake_wait_for_event(22, 2);
    fake_copy(22, 10, 1, FAKE_FINE);
    fake_launch(23, "beside", FAKE_FINE); /* no part of it */
    fake_copy(23, 0, 1, FAKE_FINE);       /* nothing to do, no record */
    fake_set(23, 0, FAKE_FINE);
    fake_end_capture(20);
    for (uintptr_t stream = 20; stream < 23; stream++) fake_launch(stream, "after", FAKE_FINE);
    fake_wait_for_event(23, 1);
    fake_launch(23, "after", FAKE_FINE);
    fake_wait_for_stream(23, 1);
    fake_wait_for_stream(20, 0);
}

static void faults(void) {
    fake_launch(9, "fails", FAKE_FAILS);
    fake_launch(9, "untimed", FAKE_UNTIMED);
    fake_copy(9, 100, 1, FAKE_TWO_PARTS);
    fake_launch(9, "inner", FAKE_INNER_ID);
    fake_launch(9, "unseen", FAKE_UNSEEN);
    fake_launch(9, "never", FAKE_NEVER);
    fake_launch(9, "dropped", FAKE_DROPPED);
    fake_launch(9, "after", FAKE_FINE);
    fake_begin_capture(9);
    fake_launch(9, "captured", FAKE_FINE);
    fake_end_capture(9);
    for (int execution = 0; execution < 3; execution++) fake_graph(9, 77);
    fake_overhead(5000);
    fake_deliver();
    fake_deliver_twice(1);
    fake_launch(9, "twice", FAKE_FINE);
    fake_copy(9, 200, 1, FAKE_TWO_PARTS);
    fake_launch(9, "inner twice", FAKE_INNER_ID);
    fake_launch(9, "unseen twice", FAKE_UNSEEN);
    fake_deliver();
    fake_deliver_twice(0);
}

static pthread_barrier_t both;
static void let_the_other_go_first(void) {
    pthread_barrier_wait(&both); /* this copy is announced */
    pthread_barrier_wait(&both); /* the other one was taken by the driver */
}
static void *second_copy(void *unused) {
    pthread_barrier_wait(&both);
    fake_copy(14, 200, 1, FAKE_FINE);
    pthread_barrier_wait(&both);
    return unused;
}

/* Copies of two threads in one stream, of which the one that is announced later runs first. */
static void at_once(void) {
    pthread_barrier_init(&both, NULL, 2);
    for (int round = 0; round < 20; round++) {
        pthread_t other;
        fake_launch(14, "before", FAKE_FINE);
        pthread_create(&other, NULL, second_copy, NULL);
        fake_copy_after(14, 100, let_the_other_go_first);
        pthread_join(other, NULL);
    }
}

int main(int count, char **arguments) {
    int with_faults = count > 1 && strcmp(arguments[1], "faults") == 0;
    if (count > 1 && !with_faults) operations = atoi(arguments[1]); /* with a word: none */
    /* The ids wrap within the run. */
    if (fake_start(UINT32_MAX - 100) != 1) { puts("not injected"); return 0; }
    pthread_t threads[2];
    for (uintptr_t thread = 0; thread < 2; thread++) pthread_create(&threads[thread], NULL, work, (void *)thread);
    for (int thread = 0; thread < 2; thread++) pthread_join(threads[thread], NULL);
    if (with_faults) faults();
    if (count > 1 && strcmp(arguments[1], "events") == 0) joined_capture();
    if (count > 1 && strcmp(arguments[1], "at-once") == 0) at_once();
    fake_synchronize();
    if (with_faults) fake_launch(12, "unfinished", FAKE_UNFINISHED);
    printf("%d operations\n", 2 * operations);
    return 0;
}
