/* Programs in which it is known who keeps whom waiting: `blamed barrier|join|children|group|depend|beside|lock|crowd|twice|in-single|paused|forever|flush|pause|serial|short|free-locks|nested|quick|
   sleeps|sleeps-serially|small-teams|killed|killed-in-task|leaves|becomes|forked|forked-in-handler MILLISECONDS [asks]`. The slow part takes so long, the quick part a tenth of it. Work that asks is in the runtime
   most of the time. */
#include <omp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "virtual_time.h"

static double limit;
static volatile double sink;

/* A step of its own: time may pass in it. */
__attribute__((noinline)) static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

static int asks;

static void work(double milliseconds) {
    if (IS_VIRTUAL_TIME) {
        uint64_t ns = (uint64_t)(milliseconds * 1e6);
        if (!asks) {
            VIRTUAL_WORK(ns);
            return;
        }
        virtual_readings_take(ns / 20);
        for (int reading = 0; reading < 20; reading++) sink += omp_get_wtime();
        return virtual_readings_take(0);
    }
    double sum = 0, until = now() + milliseconds;
    for (double end = omp_get_wtime() + milliseconds / 1e3; asks && omp_get_wtime() < end;) sum += 1;
    while (now() < until)
        for (int i = 0; i < 1000; i++) sum += i;
    sink += sum;
}

__attribute__((noinline)) void slow_part(void) {
    work(limit);
    sink += 1; /* no tail call */
}

__attribute__((noinline)) void quick_part(void) {
    work(limit / 10);
    sink += 1;
}

/* Thread n is slow in round n. */
__attribute__((noinline)) void rounds(void) {
#pragma omp parallel
    for (int round = 0; round < omp_get_num_threads(); round++) {
        if (round == omp_get_thread_num()) slow_part();
        else quick_part();
#pragma omp barrier
    }
    sink += 1;
}

__attribute__((noinline)) void joined(void) {
#pragma omp parallel
    if (omp_get_thread_num() == 1) slow_part();
    else quick_part();
    sink += 1;
}

/* It is the runtime's thread that waits, and it hears of the end when it has work again. */
__attribute__((noinline)) void joined_by_initial(void) {
#pragma omp parallel
    if (omp_get_thread_num() == 0) slow_part();
    else quick_part();
    sink += 1;
}

static volatile int created, began;

/* Another thread has the slow task, by construction; who created it waits. */
__attribute__((noinline)) void slow_elsewhere(void) {
    began = 0;
#pragma omp task
    {
        began = 1;
        slow_part();
    }
    created = 1;
    /* Where nobody wakes up for it, the test fails rather than hangs. */
    for (double until = now() + 20 * limit; !began && now() < until;) work(0.01);
}

__attribute__((noinline)) void wait_for_children(const char *mode) {
    static int x;
    if (!strcmp(mode, "children")) {
        slow_elsewhere();
#pragma omp taskwait
    } else if (!strcmp(mode, "group")) {
#pragma omp taskgroup
        slow_elsewhere();
    } else {
        began = 0;
#pragma omp task depend(out : x)
        {
            began = 1;
            slow_part();
        }
        created = 1;
        while (!began) work(0.01);
#pragma omp taskwait depend(in : x)
    }
    sink += 1;
}

__attribute__((noinline)) void before_waiting(void) {
    work(limit / 5);
    sink += 1;
}

__attribute__((noinline)) void after_waiting(void) {
    work(limit / 5);
    sink += 1;
}

/* The first thread works, waits for the slow task of another one, and works; the others wait for it at the barrier. */
__attribute__((noinline)) void wait_before_barrier(void) {
    created = 0;
#pragma omp parallel num_threads(3)
    {
        if (omp_get_thread_num() == 0) {
            before_waiting();
            slow_elsewhere();
#pragma omp taskwait
            after_waiting();
        } else while (!created) work(0.01);
#pragma omp barrier
    }
    sink += 1;
}

__attribute__((noinline)) void create_slow_part(void) {
#pragma omp task
    slow_part();
    sink += 1;
}

/* One thread works, has a slow task done, and works; the others wait for it in the barrier, or run the task. */
__attribute__((noinline)) void wait_in_single(void) {
#pragma omp parallel num_threads(3)
#pragma omp single
    {
        before_waiting();
        create_slow_part();
#pragma omp taskwait
        after_waiting();
    }
    sink += 1;
}

static volatile int others;

__attribute__((noinline)) void create_unrelated(void) {
#pragma omp task
    {
        others++;
        work(3 * limit);
    }
    sink += 1;
}

__attribute__((noinline)) void create_awaited(int *x) {
#pragma omp task depend(out : *x)
    {
        began = 1;
        work(limit);
    }
    sink += 1;
}

/* Another child runs on when the awaited one is over. */
__attribute__((noinline)) void wait_beside_unrelated(void) {
    for (int i = 0; i < 3; i++) {
        created = began = others = 0;
#pragma omp parallel num_threads(3)
        if (omp_get_thread_num() == 0) {
            static int x;
            create_unrelated();
            create_awaited(&x);
            created = 1;
            for (double until = now() + 20 * limit; (!began || !others) && now() < until;) work(0.01);
#pragma omp taskwait depend(in : x)
            sink += 1;
        } else while (!created) work(0.01);
    }
}

static omp_lock_t lock;

__attribute__((noinline)) void take_it(void) {
    omp_set_lock(&lock);
    sink += 1;
}

__attribute__((noinline)) void give_it_back(void) {
    omp_unset_lock(&lock);
    sink += 1;
}

/* The first thread takes the lock before the others come, works, and gives it back elsewhere. */
__attribute__((noinline)) void hold(void) {
    omp_init_lock(&lock);
    take_it();
#pragma omp parallel
    {
        if (omp_get_thread_num() == 0) {
            work(limit);
            give_it_back();
        } else {
            omp_set_lock(&lock);
            omp_unset_lock(&lock);
        }
    }
    omp_destroy_lock(&lock);
}

/* A hundred threads want what the first one holds. */
__attribute__((noinline)) void hold_from_many(void) {
    omp_init_lock(&lock);
#pragma omp parallel num_threads(100)
    {
        if (omp_get_thread_num() == 0) take_it();
#pragma omp barrier
        if (omp_get_thread_num() == 0) {
            usleep(limit * 1e3);
            give_it_back();
        } else {
            omp_set_lock(&lock);
            omp_unset_lock(&lock);
        }
    }
    omp_destroy_lock(&lock);
}

/* Recording is paused while one thread waits for what the other one holds. */
__attribute__((noinline)) void pause_in_wait(void) {
#pragma omp parallel num_threads(2)
    {
        if (omp_get_thread_num() == 0) {
#pragma omp critical(paused)
            {
                began = 1;
                work(limit);
                omp_control_tool(omp_control_tool_pause, 0, NULL);
            }
        } else {
            while (!began) work(0.01);
#pragma omp critical(paused)
            sink += 1;
        }
#pragma omp barrier
        if (omp_get_thread_num() == 0) omp_control_tool(omp_control_tool_start, 0, NULL);
#pragma omp barrier
    }
}

__attribute__((noinline)) void set_up(void) { work(2 * limit); sink += 1; }
__attribute__((noinline)) void in_between(void) { work(limit); sink += 1; }
__attribute__((noinline)) void tail(void) { work(limit); sink += 1; }
__attribute__((noinline)) void in_small_team(void) { work(limit); sink += 1; }
__attribute__((noinline)) void in_large_team(void) { work(limit / 10); sink += 1; }

static void *nothing(void *argument) { return argument; }

/* A third of the workers is there from the first region on, the others from the second on. */
__attribute__((noinline)) void in_teams(void) {
    /* The runtime begins after a thread that it does not know. */
    pthread_t thread;
    if (!pthread_create(&thread, NULL, nothing, NULL)) pthread_join(thread, NULL);
    set_up();
#pragma omp parallel num_threads(2)
    in_small_team();
    in_between();
#pragma omp parallel num_threads(6)
    in_large_team();
#pragma omp parallel num_threads(2)
    in_small_team();
    tail();
}

__attribute__((noinline)) void short_part(void) { work(limit / 50); sink += 1; }
__attribute__((noinline)) void parallel_part(void) { work(limit / 50); sink += 1; }

__attribute__((noinline)) void inner_part(void) { work(limit); sink += 1; }

__attribute__((noinline)) void in_inner_team(void) {
#pragma omp parallel num_threads(2)
    inner_part();
    sink += 1;
}

/* Before each barrier all have a region of their own, and one has as much to do, in turn after and before it. */
__attribute__((noinline)) void nested(void) {
    omp_set_max_active_levels(2);
#pragma omp parallel num_threads(2)
    for (int round = 0; round < 5; round++) {
        if (omp_get_thread_num() == 1 && round % 2) slow_part();
        in_inner_team();
        if (omp_get_thread_num() == 1 && round % 2 == 0) slow_part();
#pragma omp barrier
    }
    sink += 1;
}

__attribute__((noinline)) void take_free_locks(void) {
    omp_lock_t lock;
    omp_init_lock(&lock);
    /* In virtual time, time passes in the recorder's callbacks. */
    if (IS_VIRTUAL_TIME) virtual_readings_take(1000000);
    for (double until = now() + limit; now() < until;)
        for (int i = 0; i < (IS_VIRTUAL_TIME ? 1 : 100); i++) {
            omp_set_lock(&lock);
            sink += i;
            omp_unset_lock(&lock);
        }
    if (IS_VIRTUAL_TIME) virtual_readings_take(0);
    omp_destroy_lock(&lock);
}

/* Serial parts that mostly take locks which nobody else wants; how many milliseconds all take. */
__attribute__((noinline)) double with_free_locks(void) {
    double spent = 0;
    for (int round = 0; round < 4; round++) {
#pragma omp parallel
        parallel_part();
        double begin = now();
        take_free_locks();
        spent += now() - begin;
    }
    return spent;
}

/* Serial parts much shorter than the time between two samples; how many milliseconds all take. */
__attribute__((noinline)) double in_short_parts(void) {
    double took = 0;
    for (int i = 0; i < 40; i++) {
        double began = now();
        short_part();
        took += now() - began;
#pragma omp parallel
        parallel_part();
    }
    return took;
}

__attribute__((noinline)) void spins(void) { work(limit * 0.3); sink += 1; }
__attribute__((noinline)) void sleeps(void) { usleep(limit * 0.7e3); sink += 1; }

static double spun, slept;

static void spin_and_sleep(void) {
    double began = now();
    spins();
    double middle = now();
    sleeps();
    spun += middle - began;
    slept += now() - middle;
}

/* The others wait for one that works, and sleeps for longer. */
__attribute__((noinline)) void sleep_before_barriers(void) {
#pragma omp parallel num_threads(3)
    for (int round = 0; round < 30; round++) {
        if (omp_get_thread_num() == 1) spin_and_sleep();
#pragma omp barrier
    }
}

__attribute__((noinline)) void sleep_serially(void) {
    for (int round = 0; round < 30; round++) {
#pragma omp parallel num_threads(3)
        usleep(100);
        spin_and_sleep();
    }
}

__attribute__((noinline)) void team_of_one(void) {
#pragma omp parallel num_threads(1)
    work(limit);
    sink += 1;
}

__attribute__((noinline)) void team_of_two(void) {
#pragma omp parallel num_threads(2)
    usleep(limit * 1e3);
    sink += 1;
}

__attribute__((noinline)) void large_team(void) {
#pragma omp parallel num_threads(8)
    usleep(3000);
    sink += 1;
}

/* Small teams between large ones; how many milliseconds those of one, and of two, took. */
__attribute__((noinline)) void in_small_teams(void) {
    double one = 0, two = 0;
    large_team();
    for (int round = 0; round < 12; round++) {
        double began = now();
        team_of_one();
        one += now() - began;
        large_team();
        began = now();
        team_of_two();
        two += now() - began;
        large_team();
    }
    printf("%f %f\n", one, two);
}

/* Killed after some time without a word to the runtime. */
__attribute__((noinline)) void be_killed(int in_task) {
    joined();
    if (!in_task) {
        tail();
        kill(getpid(), SIGKILL);
    }
#pragma omp parallel num_threads(2)
    if (omp_get_thread_num() == 0) {
#pragma omp task
        {
            began = 1;
            usleep(limit * 1e3);
            kill(getpid(), SIGKILL);
        }
        while (!began) quick_part();
#pragma omp taskwait
    }
}

static void leave(int number) {
    (void)number;
    _exit(3);
}

/* Both processes have a region, and work serially at the end. */
__attribute__((noinline)) int leave_child(int in_handler) {
    int status = 0;
    joined();
    pid_t child = fork();
    if (child < 0) return 1;
    if (child == 0) {
        joined_by_initial();
        tail();
        if (!in_handler) _exit(3);
        struct itimerval soon = {{0, 0}, {0, 2000}};
        signal(SIGALRM, leave);
        setitimer(ITIMER_REAL, &soon, NULL);
        for (;;) free(malloc(100000));
    }
    waitpid(child, &status, 0);
    joined_by_initial();
    tail();
    return WEXITSTATUS(status) != 3;
}

int main(int count, char **arguments) {
    const char *mode = count > 1 ? arguments[1] : "barrier";
    limit = count > 2 ? atof(arguments[2]) : 50;
    asks = count > 3;
    if (!strcmp(mode, "barrier")) {
        rounds();
    } else if (!strcmp(mode, "join")) {
        for (int i = 0; i < 3; i++) joined();
    } else if (!strcmp(mode, "serial")) {
        in_teams();
    } else if (!strcmp(mode, "beside")) {
        wait_beside_unrelated();
    } else if (!strcmp(mode, "short")) {
        printf("%f\n", in_short_parts());
    } else if (!strcmp(mode, "nested")) {
        nested();
    } else if (!strcmp(mode, "free-locks")) {
        printf("%f\n", with_free_locks());
    } else if (!strcmp(mode, "sleeps")) {
        sleep_before_barriers();
        printf("%f %f\n", spun, slept);
    } else if (!strcmp(mode, "sleeps-serially")) {
        sleep_serially();
        printf("%f %f\n", spun, slept);
    } else if (!strcmp(mode, "small-teams")) {
        in_small_teams();
    } else if (!strncmp(mode, "killed", 6)) {
        be_killed(mode[6] != 0);
    } else if (!strcmp(mode, "lock")) {
        hold();
    } else if (!strcmp(mode, "twice")) {
        for (int i = 0; i < 3; i++) wait_before_barrier();
    } else if (!strcmp(mode, "in-single")) {
        for (int i = 0; i < 3; i++) wait_in_single();
    } else if (!strcmp(mode, "paused")) {
        pause_in_wait();
    } else if (!strcmp(mode, "crowd")) {
        hold_from_many();
    } else if (!strcmp(mode, "forever")) {
        printf("begun\n");
        fflush(stdout);
        for (;;) joined();
    } else if (!strcmp(mode, "pause")) {
        /* How long recording was paused, in nanoseconds; some regions, tasks and waits are in that. */
        joined();
        omp_control_tool(omp_control_tool_pause, 0, NULL);
        double since = now();
        for (int i = 0; i < 3; i++) {
            created = 0;
#pragma omp parallel
            if (omp_get_thread_num() == 0) wait_for_children("children");
            else while (!created) work(0.01);
            rounds();
        }
        printf("%.0f\n", (now() - since) * 1e6);
        omp_control_tool(omp_control_tool_start, 0, NULL);
        joined();
    } else if (!strcmp(mode, "quick")) {
        joined();
        quick_exit(3);
    } else if (!strcmp(mode, "forked")) {
        return leave_child(0);
    } else if (!strcmp(mode, "forked-in-handler")) {
        return leave_child(1);
    } else if (!strcmp(mode, "leaves")) {
        slow_part();
        _exit(3);
    } else if (!strcmp(mode, "becomes")) {
        slow_part();
        execl(arguments[0], arguments[0], "leaves", arguments[2], (char *)NULL);
    } else if (!strcmp(mode, "flush")) {
        joined_by_initial();
        int answer = omp_control_tool(omp_control_tool_flush, 0, NULL);
        printf("%d\n", answer);
        fflush(stdout);
        abort();
    } else {
        for (int i = 0; i < 3; i++) {
            created = 0;
#pragma omp parallel
            if (omp_get_thread_num() == 0) wait_for_children(mode);
            /* Who sleeps in the barrier when the task is created may not be woken for it. */
            else while (!created) work(0.01);
        }
    }
    return 0;
}
