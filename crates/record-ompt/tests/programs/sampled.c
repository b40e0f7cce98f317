/* Programs to be sampled: `sampled MODE MILLISECONDS`; the modes are at the end. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <omp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "virtual_time.h"

static double limit;
static volatile double sink;

/* CPU time, so that a busy machine takes no samples away. */
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

/* Works for `limit` milliseconds of CPU time, `depth` calls further in. */
__attribute__((noinline)) double spin(int depth) {
    double sum = 0, until = now() + limit;
    if (depth > 0) return spin(depth - 1) + 1;
    if (IS_VIRTUAL_TIME) VIRTUAL_WORK((uint64_t)(limit * 1e6));
    else while (now() < until)
        for (int i = 0; i < 1000; i++) sum += sqrt(i + sum);
    return sum;
}

/* Calls functions of a library for `limit` milliseconds of CPU time. */
__attribute__((noinline)) void call_library(void) {
    double until = now() + limit;
    while (now() < until)
        for (int i = 0; i < 1000; i++) sink += rand();
}

/* The body of `teams` forks, and goes on after that. */
__attribute__((noinline)) void in_team(void) {
#pragma omp parallel num_threads(2)
    sink += spin(2);
    sink += 1;
}

__attribute__((noinline)) void after_team(void) {
    sink += spin(1);
    sink += 1;
}

__attribute__((noinline)) void league(int teams) {
#pragma omp teams num_teams(teams)
    {
        in_team();
        after_team();
        sink += 1; /* no tail call */
    }
    sink += 1;
}

/* A region of one thread, whose body clang has the program itself call. */
__attribute__((noinline)) void in_serialized(void) {
    sink += spin(3);
    sink += 1;
}

__attribute__((noinline)) void serialized(void) {
#pragma omp parallel if (0)
    {
        in_serialized();
        sink += 1;
    }
    sink += 1;
}

/* Tasks that are not deferred, whose bodies clang has the program itself call. */
__attribute__((noinline)) void in_undeferred(void) {
    sink += spin(3);
    sink += 1;
}

__attribute__((noinline)) void undeferred(int depth) {
#pragma omp task if (0)
    {
        if (depth) undeferred(depth - 1);
        else in_undeferred();
        sink += 1;
    }
    sink += 1;
}

/* All in registers, with stack frames of odd sizes: what an unwinder needs tables for. */
__attribute__((noinline)) double with_array(int depth) {
    volatile char room[40 + 16 * 3];
    room[depth] = 1;
    return spin(depth) + room[depth];
}

__attribute__((noinline)) void in_region(void) {
#pragma omp parallel
    sink += with_array(5);
    sink += 1; /* no tail call */
}

__attribute__((noinline)) void create_tasks(int depth) {
    if (depth > 0) {
        create_tasks(depth - 1);
        sink += 1;
        return;
    }
#pragma clang loop unroll(disable)
    for (int i = 0; i < 8; i++) {
#pragma omp task
        sink += with_array(2);
    }
#pragma omp taskwait
}

/* The workers idle while this runs between two regions. */
__attribute__((noinline)) void serial_part(void) {
    sink += spin(1);
    sink += 1;
}

static int broken_off;

static void *sleeper(void *unused) {
    struct timespec nap = {0, 80000000};
    fd_set none;
    struct timeval timeout = {0, 80000};
    (void)unused;
    for (int i = 0; i < 3; i++) {
        FD_ZERO(&none);
        broken_off += nanosleep(&nap, NULL) != 0;
        broken_off += clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL) != 0;
        broken_off += usleep(80000) != 0;
        broken_off += poll(NULL, 0, 80) < 0;
        broken_off += ppoll(NULL, 0, &nap, NULL) < 0;
        broken_off += select(1, &none, NULL, NULL, &timeout) < 0;
    }
    broken_off += sleep(1) != 0;
    return NULL;
}

/* Regions of two threads in regions of two threads, eight deep. */
__attribute__((noinline)) void nest(int level) {
    if (level == 8) {
        sink += spin(0);
    } else {
#pragma omp parallel num_threads(2)
        {
            nest(level + 1);
            sink += 1;
        }
    }
    sink += 1;
}

/* Children that run regions of their own while their parent does. */
static int fork_children(void) {
    int failed = 0;
    for (int i = 0; i < 3; i++) {
        pid_t child = fork();
        if (child == 0) {
            in_region();
            exit(7);
        }
        in_region();
        int status;
        failed += waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 7;
    }
    return failed;
}

int main(int count, char **arguments) {
    const char *mode = count > 1 ? arguments[1] : "work";
    limit = count > 2 ? atof(arguments[2]) : 100;
    if (!strcmp(mode, "work")) {
        sink += with_array(3);
        in_region();
    } else if (!strcmp(mode, "calls")) {
        call_library();
    } else if (!strcmp(mode, "teams")) {
        league(2);
    } else if (!strcmp(mode, "one_team")) {
        league(1);
    } else if (!strcmp(mode, "serialized")) {
        serialized();
#pragma omp parallel
        serialized();
    } else if (!strcmp(mode, "undeferred")) {
        undeferred(2);
#pragma omp parallel
        {
            undeferred(2);
            sink += 1; /* no tail call */
        }
    } else if (!strcmp(mode, "waits")) {
        omp_lock_t lock;
        omp_init_lock(&lock);
#pragma omp parallel
        for (int i = 0; i < 3; i++) {
            omp_set_lock(&lock);
            sink += spin(1);
            omp_unset_lock(&lock);
#pragma omp barrier
        }
    } else if (!strcmp(mode, "tasks")) {
#pragma omp parallel
#pragma omp single
        create_tasks(3);
    } else if (!strcmp(mode, "serial_between")) {
        for (int i = 0; i < 4; i++) {
#pragma omp parallel
            sink += i;
            serial_part();
        }
    } else if (!strcmp(mode, "nested")) {
        omp_set_max_active_levels(8);
        nest(0);
    } else if (!strcmp(mode, "forks")) {
        in_region();
        printf("%d children failed\n", fork_children());
    } else if (!strcmp(mode, "phases")) {
        /* Waits for a line before each. */
        while (getchar() == '\n') {
            in_region();
            printf("over\n");
            fflush(stdout);
        }
    } else if (!strcmp(mode, "foreign")) {
        pthread_t thread;
        pthread_create(&thread, NULL, sleeper, NULL);
        void *library = count > 3 ? dlopen(arguments[3], RTLD_NOW) : NULL;
        if (library) {
            double (*loaded)(double) = (double (*)(double))dlsym(library, "loaded_later");
            sink += loaded(limit);
            dlclose(library);
        }
        pthread_join(thread, NULL);
        printf("%d calls broken off\n", broken_off);
    }
    return 0;
}
