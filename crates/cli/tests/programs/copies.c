/* The program and the runtime call the same functions of the C library. One thread holds a lock while it
   copies memory; the other waits for the lock, where the runtime yields, sleeps and copies as it likes. */

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
    printf("%d\n", to[1]);
    return 0;
}
