/* Overhead: tasks that are so small that running one costs more than what is in it.
 *
 *   overhead [TASKS [ADDITIONS]]      default 100000 10
 *
 * Known by construction: TASKS tasks with ADDITIONS additions each, none of which waits for another. Nothing but
 * their making and their starting keeps workers from work. */
#include <stdio.h>
#include <stdlib.h>

static void add(double *sum, long additions)
{
    #pragma omp task firstprivate(sum, additions)
    for (long i = 0; i < additions; i++)
        *(volatile double *)sum += i;
}

int main(int argc, char **argv)
{
    long tasks = argc > 1 ? atol(argv[1]) : 100000, additions = argc > 2 ? atol(argv[2]) : 10, wrong = 0;
    double *sums = calloc(tasks, sizeof *sums);
    #pragma omp parallel
    #pragma omp single
    for (long i = 0; i < tasks; i++)
        add(&sums[i], additions);
    for (long i = 0; i < tasks; i++)
        wrong += sums[i] != additions * (additions - 1) / 2.0;
    printf("%ld of %ld sums are wrong\n", wrong, tasks);
    return wrong != 0;
}
