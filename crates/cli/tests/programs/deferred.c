/* Target constructs that the thread which meets them does not wait in: 40 ms of code, and a league of teams. */

#include <stdio.h>
#include <time.h>

#pragma omp begin declare target
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

__attribute__((noinline)) static void burn(double seconds)
{
    double until = now() + seconds;
    while (now() < until) {}
}
#pragma omp end declare target

static int done;

__attribute__((noinline)) void start_code(void)
{
#pragma omp target nowait map(tofrom : done) /* the code */
    {
        burn(0.04);
        done++;
    }
    done += 0;
}

__attribute__((noinline)) void start_teams(void)
{
#pragma omp target teams distribute parallel for num_teams(1) nowait /* the teams */
    for (int i = 0; i < 2; i++)
        burn(0.02);
    done += 0;
}

int main(void)
{
    for (int round = 0; round < 4; round++) {
        start_code();
#pragma omp taskwait
        start_teams();
#pragma omp taskwait
    }
    printf("%d\n", done);
    return done != 4;
}
