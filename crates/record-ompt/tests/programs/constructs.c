/* One small program per OpenMP construct, chosen by the first argument; the second is a size.
   What each must leave in a trace is known, and asserted by the tests. */
#define _GNU_SOURCE
#include <omp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int cell, other_cell;
static int array[1000];
static int size;

static void pause_briefly(void) { usleep(2000); }

static void tasks(void) {
#pragma omp parallel
#pragma omp single
    for (int i = 0; i < size; i++) {
#pragma omp task
        cell++;
    }
}

static int fib(int n) {
    int x, y;
    if (n < 2) return n;
#pragma omp task shared(x)
    x = fib(n - 1);
#pragma omp task shared(y)
    y = fib(n - 2);
#pragma omp taskwait
    return x + y;
}

static void fibonacci(void) {
#pragma omp parallel
#pragma omp single
    printf("%d\n", fib(size));
}

static void depend(void) {
#pragma omp parallel
#pragma omp single
    {
        printf("%p %p\n", (void *)&cell, (void *)&other_cell);
#pragma omp task depend(out : cell)
        cell++;
#pragma omp task depend(in : cell) depend(inout : other_cell)
        other_cell++;
#pragma omp task depend(mutexinoutset : other_cell)
        other_cell++;
    }
}

static void wait_depend(void) {
#pragma omp parallel
#pragma omp single
    {
#pragma omp task depend(out : cell)
        cell++;
#pragma omp taskwait depend(in : cell)
        ;
    }
}

static void undeferred(void) {
#pragma omp parallel
#pragma omp single
    {
#pragma omp task if (0)
        cell++;
#pragma omp task final(1)
        {
#pragma omp task
            cell++;
        }
    }
}

static void untied(void) {
#pragma omp parallel
#pragma omp single
    for (int i = 0; i < size; i++) {
#pragma omp task untied
        {
            cell++;
#pragma omp task
            other_cell++;
#pragma omp taskyield
            pause_briefly();
#pragma omp task
            other_cell++;
#pragma omp taskwait
            cell++;
        }
    }
}

static void taskgroup(void) {
#pragma omp parallel
#pragma omp single
    {
#pragma omp taskgroup
        {
#pragma omp task
            cell++;
            pause_briefly();
        }
    }
}

static void taskloop(void) {
#pragma omp parallel
#pragma omp single
    {
#pragma omp taskloop grainsize(10)
        for (int i = 0; i < 100; i++) array[i]++;
    }
}

static void detach(void) {
#ifdef __clang__
#pragma omp parallel
#pragma omp single
    {
        omp_event_handle_t late, early;
#pragma omp task detach(late)
        cell++;
        /* The other thread is to end the task's body before the event is fulfilled. */
        while (!cell) pause_briefly();
        pause_briefly();
        omp_fulfill_event(late);
#pragma omp task detach(early)
        omp_fulfill_event(early);
#pragma omp taskwait
    }
#endif
}

static void target_nowait(void) {
#ifdef __clang__
    int x = 0, y = 0;
#pragma omp parallel
#pragma omp single
    {
#pragma omp task shared(x, y)
        {
#pragma omp target nowait map(tofrom : x) depend(out : x)
            x++;
#pragma omp target nowait map(tofrom : y) depend(out : y)
            y++;
#pragma omp taskwait
        }
    }
    if (x != 1 || y != 1) abort();
#endif
}

static void cancel(void) {
#pragma omp parallel
    {
#pragma omp for
        for (int i = 0; i < 100; i++) {
            if (i == 3) {
#pragma omp cancel for
            }
        }
    }
#pragma omp parallel
#pragma omp single
    {
#pragma omp taskgroup
        for (int i = 0; i < size; i++) {
#pragma omp task
            {
                cell++;
#pragma omp cancel taskgroup
            }
        }
    }
}

static void loops(void) {
#pragma omp parallel
    {
#pragma omp for schedule(static)
        for (int i = 0; i < 100; i++) array[i]++;
#pragma omp for schedule(dynamic, 10)
        for (int i = 0; i < 100; i++) array[i]++;
#pragma omp for schedule(guided)
        for (int i = 0; i < 100; i++) array[i]++;
    }
}

static void sections(void) {
#pragma omp parallel
    {
#pragma omp sections
        {
#pragma omp section
            cell++;
#pragma omp section
            other_cell++;
        }
    }
}

static void singles(void) {
#pragma omp parallel
    for (int i = 0; i < size; i++) {
#pragma omp single
        cell++;
    }
}

static void single_nowait(void) {
#pragma omp parallel
    {
#pragma omp single nowait
        cell++;
#pragma omp single nowait
        other_cell++;
#pragma omp critical
        cell++;
#pragma omp barrier
    }
}

static void masked(void) {
#pragma omp parallel
    {
#pragma omp master
        cell++;
#pragma omp barrier
    }
}

static void ordered(void) {
#pragma omp parallel for ordered
    for (int i = 0; i < 10; i++) {
#pragma omp ordered
        cell++;
    }
}

static void critical(void) {
#pragma omp parallel
    for (int i = 0; i < size; i++) {
#pragma omp critical(first)
        {
            cell++;
#pragma omp critical(second)
            other_cell++;
        }
    }
}

static void locks(void) {
    omp_lock_t a, b;
    omp_init_lock(&a);
    omp_init_lock(&b);
#pragma omp parallel
    {
        /* Locks need not nest. */
        omp_set_lock(&a);
        omp_set_lock(&b);
        omp_unset_lock(&a);
        omp_unset_lock(&b);
        omp_set_lock(&a);
        if (omp_test_lock(&a)) abort();
        omp_unset_lock(&a);
#pragma omp barrier
#pragma omp master
        if (omp_test_lock(&a)) omp_unset_lock(&a);
    }
    omp_destroy_lock(&a);
    omp_destroy_lock(&b);
}

static void alternating(void) {
    omp_lock_t lock;
    omp_init_lock(&lock);
#pragma omp parallel
    for (int i = 0; i < size; i++) {
#pragma omp critical
        cell++;
        omp_set_lock(&lock);
        other_cell++;
        omp_unset_lock(&lock);
    }
    omp_destroy_lock(&lock);
}

static void nest_locks(void) {
    omp_nest_lock_t lock;
    omp_init_nest_lock(&lock);
#pragma omp parallel
    {
        omp_set_nest_lock(&lock);
        omp_set_nest_lock(&lock);
        if (!omp_test_nest_lock(&lock)) abort();
        omp_unset_nest_lock(&lock);
        omp_unset_nest_lock(&lock);
        omp_unset_nest_lock(&lock);
    }
    omp_destroy_nest_lock(&lock);
}

static void reductions(void) {
    int sum = 0;
#pragma omp parallel for reduction(+ : sum)
    for (int i = 0; i < 100; i++) sum += i;
    cell = sum;
}

static void flushes(void) {
#pragma omp parallel
    {
#pragma omp flush
        cell++;
    }
}

#ifndef __clang__
enum { omp_control_tool_start = 1, omp_control_tool_pause, omp_control_tool_flush, omp_control_tool_end };
#define omp_control_tool(command, modifier, argument) (command, -2)
#endif
/* A pause in a construct, whose end is not recorded. */
static void pause_inside(void) {
#pragma omp parallel
    {
#pragma omp master
        {
            omp_control_tool(omp_control_tool_pause, 0, NULL);
            omp_control_tool(omp_control_tool_start, 0, NULL);
        }
#pragma omp barrier
    }
}

/* Ends in a construct. */
static void exit_in_master(void) {
#pragma omp parallel
    {
#pragma omp master
        exit(0);
#pragma omp barrier
    }
}

/* Ten tasks that are recorded, ten that are not, ten that are; the pause begins inside a region. */
static void control(void) {
#pragma omp parallel
#pragma omp single
    for (int part = 0; part < 3; part++) {
        if (part == 1) printf("%d\n", omp_control_tool(omp_control_tool_pause, 0, NULL));
        if (part == 2) printf("%d\n", omp_control_tool(omp_control_tool_start, 0, NULL));
        for (int i = 0; i < 10; i++) {
#pragma omp task
            cell++;
        }
#pragma omp taskwait
    }
#pragma omp parallel
    cell++;
    printf("%d\n", omp_control_tool(omp_control_tool_flush, 0, NULL));
    printf("%d\n", omp_control_tool(omp_control_tool_end, 0, NULL));
#pragma omp parallel
    cell++;
}

static void nested(void) {
    omp_set_max_active_levels(3);
#pragma omp parallel num_threads(2)
    {
#pragma omp parallel num_threads(2)
        {
#pragma omp parallel num_threads(2)
            {
#pragma omp atomic
                cell++;
            }
            other_cell = 1;
        }
        other_cell = 2;
    }
}

static void teams(void) {
#pragma omp teams num_teams(2)
#pragma omp distribute parallel for
    for (int i = 0; i < 100; i++) array[i]++;
}

static void serial(void) {
#pragma omp parallel if (0)
    cell++;
#pragma omp parallel num_threads(1)
    {
#pragma omp task
        cell++;
    }
#pragma omp task
    cell++;
#pragma omp for
    for (int i = 0; i < 10; i++) array[i]++;
}

static void regions(void) {
    for (int i = 0; i < size; i++) {
#pragma omp parallel
        cell = i;
    }
}

/* Tasks that wait for tasks that wait …: everything lies on one thread's stack. */
static void descend(int n) {
    if (n == 0) return;
#pragma omp task if (0)
    descend(n - 1);
#pragma omp taskwait
}

static void deep(void) {
#pragma omp parallel num_threads(1)
    descend(size);
}

static void exit_inside(void) {
#pragma omp parallel
    {
#pragma omp barrier
        if (omp_get_thread_num() == omp_get_num_threads() - 1) exit(3);
        pause();
    }
}

static void quick_exit_inside(void) {
#pragma omp parallel
    {
#pragma omp barrier
        if (omp_get_thread_num() == 0) _exit(4);
        pause();
    }
}

static void abort_inside(void) {
#pragma omp parallel
    {
#pragma omp barrier
        if (omp_get_thread_num() == 0) abort();
        pause();
    }
}

static void forks(void) {
    tasks();
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        tasks();
        exit(5);
    }
    int status;
    waitpid(child, &status, 0);
    tasks();
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 5) abort();
}

static void execs(void) {
    tasks();
    char text[20];
    snprintf(text, sizeof text, "%d", size);
    execl("/proc/self/exe", "constructs", "tasks", text, (char *)0);
}

/* More constructs than a thread remembers, each executed `size` times. */
static void many_places(void) {
#define ONE _Pragma("omp parallel") cell++;
#define TEN ONE ONE ONE ONE ONE ONE ONE ONE ONE ONE
    for (int i = 0; i < size; i++) {
        TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN
    }
}

static pthread_barrier_t all_done;

static void *root(void *unused) {
    tasks();
    pthread_barrier_wait(&all_done);
    return unused;
}

/* Threads that the program makes itself, each with a team of its own. */
static void roots(void) {
    pthread_t threads[3];
    pthread_barrier_init(&all_done, 0, 4);
    tasks();
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], 0, root, 0);
    pthread_barrier_wait(&all_done);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
}

static void pauses(void) {
    tasks();
    omp_pause_resource_all(omp_pause_hard);
    tasks();
}

static void endless(void) {
    for (;;) {
        tasks();
        if (write(1, ".", 1) != 1) return;
    }
}

int main(int argc, char **argv) {
    static const struct { const char *name; void (*run)(void); } all[] = {
#define CONSTRUCT(name) {#name, name}
        CONSTRUCT(tasks), CONSTRUCT(fibonacci), CONSTRUCT(depend), CONSTRUCT(wait_depend), CONSTRUCT(undeferred),
        CONSTRUCT(untied), CONSTRUCT(taskgroup), CONSTRUCT(taskloop), CONSTRUCT(detach), CONSTRUCT(cancel),
        CONSTRUCT(loops), CONSTRUCT(sections), CONSTRUCT(singles), CONSTRUCT(single_nowait), CONSTRUCT(masked),
        CONSTRUCT(ordered), CONSTRUCT(critical), CONSTRUCT(locks), CONSTRUCT(nest_locks), CONSTRUCT(nested),
        CONSTRUCT(teams), CONSTRUCT(serial), CONSTRUCT(regions), CONSTRUCT(deep), CONSTRUCT(exit_inside),
        CONSTRUCT(quick_exit_inside), CONSTRUCT(abort_inside), CONSTRUCT(forks), CONSTRUCT(execs), CONSTRUCT(roots),
        CONSTRUCT(pauses), CONSTRUCT(endless), CONSTRUCT(target_nowait), CONSTRUCT(alternating),
        CONSTRUCT(control), CONSTRUCT(pause_inside), CONSTRUCT(exit_in_master), CONSTRUCT(reductions), CONSTRUCT(flushes),
        CONSTRUCT(many_places),
    };
    size = argc > 2 ? atoi(argv[2]) : 10;
    for (unsigned i = 0; argc > 1 && i < sizeof all / sizeof *all; i++) {
        if (!strcmp(all[i].name, argv[1])) {
            all[i].run();
            return 0;
        }
    }
    fprintf(stderr, "no such construct\n");
    return 2;
}
