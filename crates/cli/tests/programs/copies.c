/* The program and the runtime call the same functions of the C library. One thread holds a lock while it
   copies memory; the other waits for the lock, where the runtime yields, sleeps and copies as it likes. Then the
   runtime itself copies what tasks get of their own, memory of the same size. */

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static omp_lock_t lock;
static char *from, *to;
static volatile long calls;

__attribute__((noinline)) void copy(int times)
{
    for (int i = 0; i < times; i++) {
        memcpy(to, from, 1 << 24);
        from[i & 0xffff]++;
        free(malloc(100 + i));
    }
    calls++;
}

__attribute__((noinline)) void wait_here(void)
{
    omp_set_lock(&lock);
    calls++;
    omp_unset_lock(&lock);
}

/* Of a taskloop, LLVM's runtime makes all tasks but the first by copying; of a task, what stands behind gcc's interface. */
struct large { char bytes[1 << 22]; };
static struct large large;

__attribute__((noinline)) void give_copies(int times)
{
    struct large own;
    own.bytes[0] = large.bytes[times & 0xff];
#ifdef __clang__
#pragma omp taskloop firstprivate(own) num_tasks(16)
    for (int i = 0; i < times; i++)
        calls += own.bytes[0];
#else
    for (int i = 0; i < times; i++) {
#pragma omp task firstprivate(own)
        calls += own.bytes[0];
#pragma omp taskwait
    }
#endif
    calls++;
}

int main(int argc, char **argv)
{
    int times = argc > 1 ? atoi(argv[1]) : 100;
    from = calloc(1, 1 << 24), to = calloc(1, 1 << 24);
    omp_init_lock(&lock);
    omp_set_lock(&lock);
#pragma omp parallel num_threads(2)
    {
        if (omp_get_thread_num() == 0) {
            copy(times);
            omp_unset_lock(&lock);
        } else {
            wait_here();
        }
    }
#pragma omp parallel num_threads(2)
#pragma omp single
    for (int i = 0; i < times / 4; i++)
        give_copies(16);
    printf("%d\n", to[1]);
    return 0;
}
