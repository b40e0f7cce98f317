/* Threads that are in a known state for a known time: `states MODE MILLISECONDS` prints the thread, state, begin and end of
   each stay, by stamps that each thread takes itself right before and right behind a construct. In virtual time, but for
   modes `forks` and `target`. */
#define _GNU_SOURCE
#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "work.h"

#ifdef __clang__
void __kmpc_atomic_start(void), __kmpc_atomic_end(void);
#define lock_atomics __kmpc_atomic_start
#define unlock_atomics __kmpc_atomic_end
#else
void GOMP_atomic_start(void), GOMP_atomic_end(void);
#define lock_atomics GOMP_atomic_start
#define unlock_atomics GOMP_atomic_end
#endif

#define SPANS 20000
static struct span {
    const char *state;
    long thread, begin, end;
} spans[SPANS];
static volatile int span_count;
static long some_ms;
static volatile double sink;

static long now(void) { return (long)work_clock_ns(); }

/* This thread was in this state from `begin` until now, which is returned. */
static long was(const char *state, long begin) {
    long end = now();
    int place = __atomic_fetch_add(&span_count, 1, __ATOMIC_RELAXED);
    if (place < SPANS) spans[place] = (struct span){state, syscall(SYS_gettid), begin, end};
    return end;
}

/* Works for so many times `some_ms`. */
__attribute__((noinline)) static void spin(double times) {
    WORK_NS(times * some_ms * 1e6);
}

static void work(double times) {
    long begin = now();
    spin(times);
    was("parallel", begin);
}

static volatile int flag;
static void raise_flag(void) { __atomic_store_n(&flag, 1, __ATOMIC_RELEASE); }

/* Until another thread has got there; a worker's work. */
static void await_flag(void) {
    long begin = now();
    struct timespec nap = {0, 50000};
    while (!__atomic_load_n(&flag, __ATOMIC_ACQUIRE)) nanosleep(&nap, NULL);
    was("parallel", begin);
}

/* One holds it and works, the other wants it. */
#define MUTEX(name, take, leave)                                                                                  \
    static void name(const char *state) {                                                                         \
        flag = 0;                                                                                                 \
        _Pragma("omp parallel num_threads(2)") {                                                                  \
            if (omp_get_thread_num() == 0) {                                                                      \
                take;                                                                                             \
                raise_flag();                                                                                     \
                work(2);                                                                                          \
                leave;                                                                                            \
                work(1);                                                                                          \
            } else {                                                                                              \
                await_flag();                                                                                     \
                long begin = now();                                                                               \
                take;                                                                                             \
                begin = was(state, begin);                                                                        \
                leave;                                                                                            \
                work(1);                                                                                          \
            }                                                                                                     \
        }                                                                                                         \
    }

static omp_lock_t plain;
static omp_nest_lock_t nest;
MUTEX(lock, omp_set_lock(&plain), omp_unset_lock(&plain))
MUTEX(nest_lock, omp_set_nest_lock(&nest), omp_unset_nest_lock(&nest))
MUTEX(atomic, lock_atomics(), unlock_atomics())

static void critical(void) {
    flag = 0;
#pragma omp parallel num_threads(2)
    {
        if (omp_get_thread_num() == 0) {
#pragma omp critical(guarded)
            {
                raise_flag();
                work(2);
            }
            work(1);
        } else {
            await_flag();
            long begin = now();
#pragma omp critical(guarded)
            begin = was("critical", begin);
            work(1);
        }
    }
}

static void ordered(void) {
#pragma omp parallel for ordered schedule(static, 1) num_threads(2)
    for (int i = 0; i < 2; i++) {
        work(i == 0 ? 2 : 0.5);
        long begin = now();
#pragma omp ordered
        {
            if (i == 1) was("ordered", begin);
            work(0.5);
        }
    }
}

static void explicit_barrier(void) {
#pragma omp parallel num_threads(2)
    for (int i = 0; i < 2; i++) {
        work(omp_get_thread_num() == i ? 2 : 0.5);
        long begin = now();
#pragma omp barrier
        was("barrier_explicit", begin);
    }
}

static void workshare_barrier(void) {
#pragma omp parallel num_threads(2)
    {
        long begin = 0;
#pragma omp for schedule(dynamic, 1)
        for (int i = 0; i < 2; i++) {
            work(i == 0 ? 2 : 0.5);
            begin = now();
        }
        if (begin) was("barrier_workshare", begin);
        work(0.5);
    }
}

/* Serial code, with idle workers; regions at whose end one waits for the other. */
static void regions(void) {
    static long left[2], over;
    for (int round = 0; round < 4; round++) {
#pragma omp parallel num_threads(2)
        {
            int me = omp_get_thread_num();
            if (round > 0 && me == 1) {
                /* Until when it waited after the region before, the master's clock tells. */
                long begin = left[1];
                int place = __atomic_fetch_add(&span_count, 1, __ATOMIC_RELAXED);
                if (begin < over)
                    spans[place] = (struct span){"barrier_parallel", syscall(SYS_gettid), begin, over};
                else
                    spans[place] = (struct span){"idle", syscall(SYS_gettid), begin, begin};
                was("idle", begin < over ? over : begin);
            }
            work(me == round % 2 ? 1.5 : 0.5);
            left[me] = now();
        }
        over = was("barrier_parallel", left[0]);
        if (round < 3) {
            spin(1.5);
            was("serial", over);
        }
    }
}

/* The initial thread is the league's first team, and waits for the other. */
static void league(void) {
    static long left;
#pragma omp teams num_teams(2) thread_limit(1)
    {
        long begin = now();
        spin(omp_get_team_num() == 0 ? 0.5 : 2);
        begin = was("parallel", begin);
        if (omp_get_team_num() == 0) left = begin;
    }
    was("barrier_teams", left);
}

static void child(double times) {
    raise_flag();
    work(times);
}

static void taskwait(void) {
#pragma omp parallel num_threads(2)
#pragma omp single
    {
        flag = 0;
#pragma omp task
        child(2);
        await_flag();
        long begin = now();
#pragma omp taskwait
        was("taskwait", begin);
        work(1);
    }
}

static void taskwait_depend(void) {
    static int variable;
#pragma omp parallel num_threads(2)
#pragma omp single
    {
        flag = 0;
#pragma omp task depend(out : variable)
        child(2);
        await_flag();
        long begin = now();
#pragma omp taskwait depend(in : variable)
        was("taskwait_depend", begin);
        work(1);
    }
}

static void taskgroup(void) {
#pragma omp parallel num_threads(2)
#pragma omp single
    {
        long begin;
        flag = 0;
#pragma omp taskgroup
        {
#pragma omp task
            child(2);
            await_flag();
            begin = now();
        }
        was("taskgroup", begin);
        work(1);
    }
}

struct slow {
    double value;
};
static volatile int combined;

static void combine(struct slow *out, const struct slow *in) {
    long begin = now();
    spin(1);
    out->value += in->value;
    /* The runtime combines the threads' values; the last one, with the original, is the program's own. */
    was(__atomic_fetch_add(&combined, 1, __ATOMIC_RELAXED) == 0 ? "reduction" : "parallel", begin);
}

static void reduction(void) {
#pragma omp declare reduction(slowly : struct slow : combine(&omp_out, &omp_in)) initializer(omp_priv = (struct slow){0})
    struct slow sum = {0};
    combined = 0;
#pragma omp parallel num_threads(2) reduction(slowly : sum)
    {
        work(0.5);
        sum.value += 1;
    }
    sink = sum.value;
}

/* Regions that each need more threads than the one before: between the stamps in front of the region and in it the
   runtime makes them. Many more threads than these would be sampled more rarely. */
static void forks(void) {
    for (int i = 1; i <= 6; i++) {
        static long begin;
        spin(0.1);
        begin = now();
        spin(1);
        begin = was("serial", begin);
#pragma omp parallel num_threads(4 * i)
        if (omp_get_thread_num() == 0) was("overhead", begin);
    }
}

static void target(void) {
    static int is_found;
    double sum = 0;
    /* The runtime looks for devices before it tells of the first construct. */
    if (!is_found)
#pragma omp target map(tofrom : sum)
        sum += 1;
    is_found = 1;
    long begin = now();
    spin(1);
    begin = was("serial", begin);
    int many = (int)some_ms * 300000;
#pragma omp target map(tofrom : sum)
    for (int i = 1; i < many; i++) sum += 1.0 / i;
    was("target", begin);
    sink = sum;
    begin = now();
    spin(1);
    was("serial", begin);
}

static void *foreigner(void *unused) {
    long begin = now();
    (void)unused;
    spin(3);
    was("no_openmp", begin);
    return NULL;
}

static void foreign(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, foreigner, NULL);
    pthread_join(thread, NULL);
}

int main(int count, char **arguments) {
    const char *mode = count > 1 ? arguments[1] : "";
    some_ms = count > 2 ? atol(arguments[2]) : 40;
    int known = 1;
    omp_init_lock(&plain);
    omp_init_nest_lock(&nest);
    /* Threads are made, and places in the code met, before anything is measured. */
    if (strcmp(mode, "foreign")) {
#pragma omp parallel num_threads(2)
        sink += 1;
    }
    for (int round = 0; round < 2; round++) {
        if (!strcmp(mode, "regions")) regions();
        else if (!strcmp(mode, "barrier")) explicit_barrier();
        else if (!strcmp(mode, "workshare")) workshare_barrier();
        else if (!strcmp(mode, "teams")) league();
        else if (!strcmp(mode, "taskwait")) taskwait();
        else if (!strcmp(mode, "taskwait_depend")) taskwait_depend();
        else if (!strcmp(mode, "taskgroup")) taskgroup();
        else if (!strcmp(mode, "lock")) lock("lock");
        else if (!strcmp(mode, "nest_lock")) nest_lock("nest_lock");
        else if (!strcmp(mode, "critical")) critical();
        else if (!strcmp(mode, "ordered")) ordered();
        else if (!strcmp(mode, "atomic")) atomic("atomic");
        else if (!strcmp(mode, "reduction")) reduction();
        else if (!strcmp(mode, "forks")) forks();
        else if (!strcmp(mode, "target")) target();
        else if (!strcmp(mode, "foreign")) foreign();
        else known = 0;
    }
    for (int i = 0; i < span_count && i < SPANS; i++)
        printf("%s %ld %ld %ld\n", spans[i].state, spans[i].thread, spans[i].begin, spans[i].end);
    return !known;
}
