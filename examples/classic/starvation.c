/* Starvation: a task that everything waits for, then work for everybody, again and again.
 *
 *   starvation [ROUNDS [MS]]      default 10 20
 *
 * Known by construction: while `prepare` runs for MS milliseconds, all workers but one have nothing to do.
 * Starvation is ROUNDS * (workers - 1) * MS, and `prepare` is to blame for it. */
#include <omp.h>
#include <stdlib.h>
#include <time.h>

static char prepared;
static struct timespec length;

/* The sleep stands for work, so that the answer does not depend on how busy the machine is. */
static void work(void)
{
    nanosleep(&length, NULL);
}

static void prepare(void)
{
    #pragma omp task depend(out : prepared)
    work();
}

static void use(void)
{
    #pragma omp task depend(in : prepared)
    work();
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 10;
    double ms = argc > 2 ? atof(argv[2]) : 20;
    length.tv_sec = ms / 1000;
    length.tv_nsec = (ms - 1000.0 * length.tv_sec) * 1e6;
    #pragma omp parallel
    #pragma omp single
    for (int round = 0; round < rounds; round++) {
        prepare();
        for (int i = 0; i < omp_get_num_threads(); i++)
            use();
    }
    return 0;
}
