/* Two loops over the rows of a matrix: in the first, row i costs i + 1, and the static schedule gives
   the last thread the longest rows; in the second every row costs the same.

   Usage: imbalance [N [REPEAT]]       (default 3000 10)

   Known by construction, with T threads: of the work in the triangular loop, thread t has the share
   (2 t + 1) / T^2, so the loop's efficiency is T / (2 T - 1): 0.67 for two threads, 0.57 for four.
   The square loop is balanced. No tasks. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static double row_sum(int row, int length)
{
    double sum = 0;
    for (int i = 0; i < length; i++)
        sum += sqrt((double)row * i + 1);
    return sum;
}

__attribute__((noinline)) static void triangular(int n, double *sums)
{
#pragma omp parallel for schedule(static) /* the imbalanced loop */
    for (int row = 0; row < n; row++)
        sums[row] = row_sum(row, row + 1);
}

__attribute__((noinline)) static void square(int n, double *sums)
{
#pragma omp parallel for schedule(static) /* the balanced loop */
    for (int row = 0; row < n; row++)
        sums[row] = row_sum(row, n / 2);
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 3000;
    int repeat = argc > 2 ? atoi(argv[2]) : 10;
    if (n < 1 || repeat < 1) {
        fprintf(stderr, "usage: imbalance [N [REPEAT]]\n");
        return 2;
    }
    double *a = calloc(n, sizeof *a), *b = calloc(n, sizeof *b);
    for (int i = 0; i < repeat; i++) {
        triangular(n, a);
        square(n, b);
    }
    int same = 1;
    for (int row = 0; row < n; row++)
        same &= a[row] == row_sum(row, row + 1) && b[row] == row_sum(row, n / 2);
    printf("imbalance %d %d: %s\n", n, repeat, same ? "as on one thread" : "DIFFERS from one thread");
    return same ? 0 : 1;
}
