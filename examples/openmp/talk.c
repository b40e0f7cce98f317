/* The example of the talk that presented OpenMP's tools interface (SC13): the master sets a lock and
   works for long; all others wait for the lock inside a loop. A profiler shows the waiting where it
   is felt, in the loop; its cause is the master.

   Usage: talk [MILLISECONDS]       (default 300)

   Known by construction: thread 0 takes the lock in main, before the others exist, and gives it back
   at the end of long_operation. Every other thread asks for it in add_up within the first
   microseconds and waits for about MILLISECONDS. So the symptom is omp_set_lock in add_up, and the
   cause is omp_set_lock in main. Needs at least two threads. */

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

static omp_lock_t lock;
static double sum;

static double long_operation(double seconds)
{
    double end = omp_get_wtime() + seconds, sink = 0;
    while (omp_get_wtime() < end)
        for (int i = 1; i < 1000; i++)
            sink += 1.0 / i;
    return sink;
}

static void add_up(int i)
{
    omp_set_lock(&lock); /* where the waiting is felt */
    sum += i;
    omp_unset_lock(&lock);
}

int main(int argc, char **argv)
{
    double seconds = (argc > 1 ? atof(argv[1]) : 300) / 1000;
    volatile double sink = 0;
    int threads = 0, rounds = 4;
    omp_init_lock(&lock);
    omp_set_lock(&lock); /* who makes them wait */
#pragma omp parallel reduction(+ : threads)
    {
        threads += 1;
        if (omp_get_thread_num() == 0) {
            sink = long_operation(seconds);
            omp_unset_lock(&lock);
        } else {
            for (int i = 0; i < rounds; i++)
                add_up(i + 1);
        }
    }
    double expected = (threads - 1) * rounds * (rounds + 1) / 2.0;
    printf("talk %.0f: sum %.0f, %s\n", seconds * 1000, sum, sum == expected ? "as expected" : "WRONG");
    return sum == expected && sink > 0 ? 0 : 1;
}
