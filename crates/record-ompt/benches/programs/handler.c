/* How long a signal keeps a program away from its work: `handler empty|sampled DEPTH warm|cold`. At DEPTH frames
   in a parallel region the program reads the clock again and again; where two readings lie further apart than
   the work between them takes, a signal's handler has run. `empty` installs a timer and a handler that does
   nothing, `sampled` leaves both to whoever was preloaded. `cold` reads 64 MiB of other data in between, so that
   neither the handler's code nor its data is in the caches near the processor. Prints the median in nanoseconds, and how many. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MOST 20000
static long gaps[MOST];
static int count;
static volatile long sink;
static char *other_data;
#define OTHER_BYTES (64L << 20)

static long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000L + t.tv_nsec;
}

static void nothing(int signal) { (void)signal; }

static void start_timer(long period) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = nothing;
    action.sa_flags = SA_RESTART;
    sigaction(SIGURG, &action, NULL);
    struct sigevent event;
    memset(&event, 0, sizeof event);
    event.sigev_signo = SIGURG;
    event.sigev_notify = SIGEV_THREAD_ID;
    event._sigev_un._tid = syscall(SYS_gettid);
    timer_t timer;
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    struct itimerspec every = {{0, period}, {0, period}};
    timer_settime(timer, 0, &every, NULL);
}

/* Two readings lie about 25 ns apart; a signal takes more than 700. */
static void watch(int cold) {
    long begin = now(), end = begin + 2000000000L;
    while (begin < end && count < MOST) {
        if (cold) {
            for (long i = 0; i < OTHER_BYTES; i += 64) sink += other_data[i];
            /* What the handler touches is as far away until the next signal comes, and then no more. */
            long stop = now() + 3000000, last = now();
            while (last < stop) {
                long here = now();
                if (here - last > 700) {
                    gaps[count++] = here - last;
                    break;
                }
                last = here;
            }
            begin = now();
        } else {
            long here = now();
            if (here - begin > 700) gaps[count++] = here - begin;
            begin = here;
        }
    }
}

__attribute__((noinline)) static void deeper(int depth, int cold) {
    if (depth > 0)
        deeper(depth - 1, cold);
    else
        watch(cold);
    sink += 1;
}

static int by_size(const void *a, const void *b) {
    long x = *(const long *)a, y = *(const long *)b;
    return (x > y) - (x < y);
}

int main(int arguments, char **argument) {
    if (arguments < 4) return 2;
    int depth = atoi(argument[2]), cold = !strcmp(argument[3], "cold");
    long period = 1000000000L / atol(getenv("TASKSCOPE_SAMPLE"));
    other_data = malloc(OTHER_BYTES);
    memset(other_data, 1, OTHER_BYTES);
#pragma omp parallel num_threads(1)
    {
        if (!strcmp(argument[1], "empty")) start_timer(period);
        deeper(depth, cold);
    }
    if (count == 0) return 1;
    qsort(gaps, count, sizeof *gaps, by_size);
    printf("%ld %d\n", gaps[count / 2], count);
    return 0;
}
