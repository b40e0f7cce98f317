/* How long the handler of a sample runs: `handler DEPTH warm|cold`, with the recorder preloaded. At DEPTH calls of its
   own in a parallel region the program puts a handler of its own before that of the recorder, which reads the clock, calls
   the recorder's, and reads the clock again. The kernel's part of a signal is left out so, which on a virtual machine takes
   ten times as long as the handler and varies by more than that. `cold` reads other data all the time, so that less of
   the handler's code and data is in the caches near the processor the longer the samples lie apart. Prints one number of nanoseconds for each sample. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SAMPLES 200
#define OTHER_BYTES (64L << 20)

/* The kernel's own form of an action: `sigaction` is the recorder's when it is preloaded, and keeps its handler. */
struct action {
    void (*handler)(int, siginfo_t *, void *);
    unsigned long flags;
    void (*restorer)(void);
    unsigned long mask;
};

static long taken[SAMPLES];
static volatile int count;
static volatile long sink;
static char *other_data;
static struct action recorders;

static long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000L + t.tv_nsec;
}

static void timed(int signal, siginfo_t *info, void *context) {
    long begin = now();
    recorders.handler(signal, info, context);
    long end = now();
    if (count < SAMPLES) taken[count++] = end - begin;
}

static void stand_before(void) {
    if (syscall(SYS_rt_sigaction, SIGURG, NULL, &recorders, sizeof recorders.mask) || !recorders.handler) {
        fprintf(stderr, "no handler of the recorder's for SIGURG\n");
        exit(1);
    }
    struct action ours = recorders;
    ours.handler = timed;
    syscall(SYS_rt_sigaction, SIGURG, &ours, NULL, sizeof ours.mask);
}

static void watch(int cold) {
    long stop = now() + 20000000000L;
    while (count < SAMPLES && now() < stop) {
        int before = count;
        for (long i = 0; cold && i < OTHER_BYTES; i += 64) sink += other_data[i];
        /* What came while they were read does not count. */
        if (cold) count = before;
        before = count;
        while (cold && count == before && now() < stop) sink += 1;
    }
}

__attribute__((noinline)) static void deeper(int depth, int cold) {
    if (depth > 0)
        deeper(depth - 1, cold);
    else
        watch(cold);
    sink += 1;
}

int main(int arguments, char **argument) {
    if (arguments < 3) return 2;
    int depth = atoi(argument[1]), cold = !strcmp(argument[2], "cold");
    other_data = malloc(OTHER_BYTES);
    memset(other_data, 1, OTHER_BYTES);
#pragma omp parallel num_threads(1)
    {
        stand_before();
        deeper(depth, cold);
    }
    for (int i = 0; i < count; i++) printf("%ld\n", taken[i]);
    return 0;
}
