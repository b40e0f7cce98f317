/* Heat diffusion on a square plate (Jacobi iteration), each step in parallel over the rows, by
   worksharing or by tasks.

   Usage: heat [for|taskloop [N [STEPS]]]       N: rows and columns inside (default: for 512 100)

   Known by construction:
     for        one parallel region, STEPS worksharing loops on each thread, no task
     taskloop   8 STEPS tasks (TASKS a step, each of N / 8 rows; N must be at least 8)
   Both compute the same numbers to the last bit. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TASKS 8

static int n;

static void update_row(const double *from, double *to, int row)
{
    int width = n + 2;
    for (int c = 1; c <= n; c++) {
        const double *p = &from[row * width + c];
        to[row * width + c] = 0.25 * (p[-1] + p[1] + p[-width] + p[width]);
    }
}

static void step_by_loop(const double *from, double *to)
{
#pragma omp for schedule(static)
    for (int row = 1; row <= n; row++)
        update_row(from, to, row);
}

static void step_by_tasks(const double *from, double *to)
{
#pragma omp taskloop num_tasks(TASKS)
    for (int row = 1; row <= n; row++)
        update_row(from, to, row);
}

static void swap(double **a, double **b)
{
    double *c = *a;
    *a = *b;
    *b = c;
}

static double *plate(void)
{
    double *cells = calloc((size_t)(n + 2) * (n + 2), sizeof *cells);
    for (int c = 0; c < n + 2; c++)
        cells[c] = 100; /* the upper edge is hot */
    return cells;
}

int main(int argc, char **argv)
{
    int by_tasks = argc > 1 && strcmp(argv[1], "taskloop") == 0;
    n = argc > 2 ? atoi(argv[2]) : 512;
    int steps = argc > 3 ? atoi(argv[3]) : 100;
    if ((argc > 1 && !by_tasks && strcmp(argv[1], "for") != 0) || n < TASKS || steps < 0) {
        fprintf(stderr, "usage: heat [for|taskloop [N [STEPS]]]   with N >= %d\n", TASKS);
        return 2;
    }
    double *a = plate(), *b = plate();
    if (by_tasks) {
#pragma omp parallel
#pragma omp single
        for (int step = 0; step < steps; step++) {
            step_by_tasks(a, b);
            swap(&a, &b);
        }
    } else {
#pragma omp parallel
        {
            double *from = a, *to = b;
            for (int step = 0; step < steps; step++) {
                step_by_loop(from, to);
                swap(&from, &to);
            }
        }
        if (steps % 2 != 0)
            swap(&a, &b);
    }

    /* Check: the same on one thread. */
    double *c = plate(), *d = plate();
    for (int step = 0; step < steps; step++) {
        for (int row = 1; row <= n; row++)
            update_row(c, d, row);
        swap(&c, &d);
    }
    int same = memcmp(a, c, (size_t)(n + 2) * (n + 2) * sizeof *a) == 0;
    printf("heat %s %d %d: edge %.6f, %s\n", by_tasks ? "taskloop" : "for", n, steps,
           a[TASKS * (n + 2) + n / 2], same ? "as on one thread" : "DIFFERS from one thread");
    return same ? 0 : 1;
}
