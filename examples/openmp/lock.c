/* One thread holds a lock through a long operation while all others wait for it: the waits show in
   look_up, the cause is rebuild_index.

   Usage: lock [ROUNDS [MILLISECONDS]]       (default 10 20)

   Known by construction: in each round thread 0 holds the lock for MILLISECONDS, and every other
   thread asks for it after thread 0 has it. Each of them therefore waits about ROUNDS x MILLISECONDS
   in all, and the line to blame is that of rebuild_index's omp_set_lock (or its omp_unset_lock).
   Needs at least two threads. */

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

static omp_lock_t lock;
static volatile double index_sum; /* what the lock guards */
static long look_ups;

static double busy_until(double end)
{
    double sum = 0;
    while (omp_get_wtime() < end)
        for (int i = 1; i < 1000; i++)
            sum += 1.0 / i;
    return sum;
}

static void rebuild_index(double seconds, int *is_held)
{
    omp_set_lock(&lock); /* who holds the lock */
#pragma omp atomic write
    *is_held = 1;
    index_sum = busy_until(omp_get_wtime() + seconds);
    omp_unset_lock(&lock);
}

static void look_up(int *is_held)
{
    for (int held = 0; !held;) {
#pragma omp atomic read
        held = *is_held;
    }
    omp_set_lock(&lock); /* who waits for the lock */
    look_ups++;
    omp_unset_lock(&lock);
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 10;
    double seconds = (argc > 2 ? atof(argv[2]) : 20) / 1000;
    int threads = 0;
    omp_init_lock(&lock);
    int *is_held = calloc(rounds > 0 ? rounds : 1, sizeof *is_held);
#pragma omp parallel
    {
#pragma omp single
        threads = omp_get_num_threads();
        for (int round = 0; round < rounds; round++) {
            if (omp_get_thread_num() == 0)
                rebuild_index(seconds, &is_held[round]);
            else
                look_up(&is_held[round]);
#pragma omp barrier
        }
    }
    long expected = (long)rounds * (threads - 1);
    printf("lock %d %.0f: %ld look-ups, %s\n", rounds, seconds * 1000, look_ups,
           look_ups == expected ? "as expected" : "WRONG");
    return look_ups == expected ? 0 : 1;
}
