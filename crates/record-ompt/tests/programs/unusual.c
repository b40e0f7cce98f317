/* Frames that are not followed by frame pointers or a distance from the stack pointer: `unusual MODE`. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

#define STACK (256 << 10)

static volatile double sink;

/* CPU time: a busy machine takes no samples away. */
__attribute__((noinline)) static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

__attribute__((noinline)) void spin(double *kept, int ms) {
    double until = now() + ms;
    while (now() < until)
        for (int i = 0; i < 100; i++) sink += i;
    kept[0] = 1;
}

/* Variables that are aligned, arguments on the stack, and a stack whose size is not known. */
__attribute__((noinline)) double aligned(int a, int b, int c, int d, int e, int f, int ms, int bytes) {
    __attribute__((aligned(64))) double kept[64];
    volatile char *more = __builtin_alloca(bytes);
    more[0] = a;
    spin(kept, ms);
    return kept[0] + more[0];
}

__attribute__((noinline)) double step(int ms) { return aligned(1, 2, 3, 4, 5, 6, ms, ms) + 1; }

__attribute__((noinline)) double outer(int ms) { return step(ms) + 1; }

static volatile int alarms;

__attribute__((noinline)) void on_alarm(int number) {
    double kept[1];
    spin(kept, 5);
    sink += number;
    alarms++;
}

__attribute__((noinline)) void interrupted(void) {
    struct itimerval timer = {{0, 10000}, {0, 10000}}, none = {{0, 0}, {0, 0}};
    setitimer(ITIMER_PROF, &timer, NULL);
    /* As many as the tests need: a busy machine delays alarms. */
    while (alarms < 20) sink += 1;
    setitimer(ITIMER_PROF, &none, NULL);
}

__attribute__((noinline)) void in_region(void) {
#pragma omp parallel num_threads(1)
    {
        interrupted();
        sink += 1;
    }
    sink += 1;
}

/* The handler has a stack of its own: lower than the thread's (on the heap), or further out on it. */
__attribute__((noinline)) void on_stack_at(void *memory) {
    stack_t stack = {.ss_sp = memory, .ss_size = STACK}, none = {.ss_flags = SS_DISABLE};
    sigaltstack(&stack, NULL);
    in_region();
    sigaltstack(&none, NULL);
}

int main(int count, char **arguments) {
    const char *mode = count > 1 ? arguments[1] : "";
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_alarm;
    action.sa_flags = strcmp(mode, "signals") == 0 ? 0 : SA_ONSTACK;
    sigaction(SIGPROF, &action, NULL);
    if (strcmp(mode, "aligned") == 0) {
        sink += outer(200);
    } else if (strcmp(mode, "signals") == 0) {
        in_region();
    } else if (strcmp(mode, "on_heap") == 0) {
        on_stack_at(malloc(STACK));
    } else if (strcmp(mode, "further_out") == 0) {
        char memory[STACK];
        on_stack_at(memory);
        sink += memory[7];
    }
    return 0;
}
