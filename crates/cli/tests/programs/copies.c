/* The program and the runtime call the same functions of the C library. One thread holds what the other wants,
   and copies memory, allocates, and sleeps in the kernel's futex meanwhile; the other waits, where the runtime
   yields, sleeps, and copies as it likes. */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static omp_lock_t lock;
static omp_nest_lock_t nest;
static char *from, *to;
static volatile long calls;
static volatile int taken;
static int times;

__attribute__((noinline)) void copy(void)
{
    for (int i = 0; i < times; i++) {
        memcpy(to, from, 1 << 24);
        from[i & 0xffff]++;
        free(malloc(100 + i));
    }
    calls++;
}

__attribute__((noinline)) void sleep_in_futex(void)
{
    static int never = 0;
    struct timespec nap = {0, 5000000};
    for (int i = 0; i < 8; i++)
        syscall(SYS_futex, &never, FUTEX_WAIT_PRIVATE, 0, &nap, NULL, 0);
    calls++;
}

__attribute__((noinline)) void hold(int stage)
{
    taken = stage;
    copy();
    sleep_in_futex();
    calls++;
}

__attribute__((noinline)) void await(int stage)
{
    while (taken < stage)
        usleep(100);
    calls++;
}

__attribute__((noinline)) void wait_for_lock(void)
{
    await(1);
    omp_set_lock(&lock);
    omp_unset_lock(&lock);
    calls++;
}

__attribute__((noinline)) void wait_for_nest_lock(void)
{
    await(2);
    omp_set_nest_lock(&nest);
    omp_unset_nest_lock(&nest);
    calls++;
}

__attribute__((noinline)) void wait_for_critical(int holds)
{
    if (!holds)
        await(3);
#pragma omp critical(guarded)
    {
        if (holds)
            hold(3);
        calls++;
    }
    calls++;
}

__attribute__((noinline)) void wait_for_turn(void)
{
#pragma omp for ordered schedule(static, 1)
    for (int i = 0; i < 2; i++) {
        if (i == 0)
            hold(4);
#pragma omp ordered
        calls++;
    }
    calls++;
}

int main(int argc, char **argv)
{
    times = argc > 1 ? atoi(argv[1]) : 15;
    from = calloc(1, 1 << 24), to = calloc(1, 1 << 24);
    omp_init_lock(&lock);
    omp_init_nest_lock(&nest);
    omp_set_lock(&lock);
    omp_set_nest_lock(&nest);
#pragma omp parallel num_threads(2)
    {
        int holds = omp_get_thread_num() == 0;
        if (holds) {
            hold(1);
            omp_unset_lock(&lock);
        } else {
            wait_for_lock();
        }
#pragma omp barrier
        if (holds) {
            hold(2);
            omp_unset_nest_lock(&nest);
        } else {
            wait_for_nest_lock();
        }
#pragma omp barrier
        wait_for_critical(holds);
#pragma omp barrier
        wait_for_turn();
        calls++;
    }
    printf("%d\n", to[1]);
    return 0;
}
