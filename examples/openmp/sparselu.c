/* LU factorisation of a sparse blocked matrix: empty blocks are skipped, so the work is irregular, and
   phases end with a taskwait, so that threads starve at the end of each.

   Usage: sparselu [N [B]]       N x N blocks of B x B numbers (default 32 64)

   Block (i, j) is filled at the start iff i = j, |i - j| = 1, or i + 2 j is divisible by 7.
   Known by construction: with the filled blocks followed through the elimination, step k creates
     fwd   one task for each filled block (k, j), j > k
     bdiv  one task for each filled block (i, k), i > k
     bmod  one task for each pair of these, which fills block (i, j)
   and lu0 of block (k, k) runs in the creating thread itself, without a task. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int n, block;
static long tasks;

static void lu0(double *d)
{
    for (int k = 0; k < block; k++)
        for (int i = k + 1; i < block; i++) {
            d[i * block + k] /= d[k * block + k];
            for (int j = k + 1; j < block; j++)
                d[i * block + j] -= d[i * block + k] * d[k * block + j];
        }
}

/* L * X = A */
static void solve_lower(const double *d, double *a)
{
    for (int k = 0; k < block; k++)
        for (int i = k + 1; i < block; i++)
            for (int j = 0; j < block; j++)
                a[i * block + j] -= d[i * block + k] * a[k * block + j];
}

/* X * U = A */
static void solve_upper(const double *d, double *a)
{
    for (int i = 0; i < block; i++)
        for (int k = 0; k < block; k++) {
            a[i * block + k] /= d[k * block + k];
            for (int j = k + 1; j < block; j++)
                a[i * block + j] -= a[i * block + k] * d[k * block + j];
        }
}

/* C = C - A * B */
static void multiply(const double *a, const double *b, double *c)
{
    for (int i = 0; i < block; i++)
        for (int k = 0; k < block; k++)
            for (int j = 0; j < block; j++)
                c[i * block + j] -= a[i * block + k] * b[k * block + j];
}

static void fwd(double *d, double *a)
{
    tasks++;
#pragma omp task firstprivate(d, a)
    solve_lower(d, a);
}

static void bdiv(double *d, double *a)
{
    tasks++;
#pragma omp task firstprivate(d, a)
    solve_upper(d, a);
}

static void bmod(double *a, double *b, double *c)
{
    tasks++;
#pragma omp task firstprivate(a, b, c)
    multiply(a, b, c);
}

static void factor_matrix(double **m)
{
#pragma omp parallel
#pragma omp single
    for (int k = 0; k < n; k++) {
        double *diagonal = m[k * n + k];
        lu0(diagonal);
        for (int j = k + 1; j < n; j++)
            if (m[k * n + j])
                fwd(diagonal, m[k * n + j]);
        for (int i = k + 1; i < n; i++)
            if (m[i * n + k])
                bdiv(diagonal, m[i * n + k]);
#pragma omp taskwait
        for (int i = k + 1; i < n; i++)
            for (int j = k + 1; j < n; j++)
                if (m[i * n + k] && m[k * n + j]) {
                    if (!m[i * n + j])
                        m[i * n + j] = calloc((size_t)block * block, sizeof(double));
                    bmod(m[i * n + k], m[k * n + j], m[i * n + j]);
                }
#pragma omp taskwait
    }
}

static int filled(int i, int j)
{
    return i == j || abs(i - j) == 1 || (i + 2 * j) % 7 == 0;
}

static double entry(int i, int j)
{
    if (!filled(i / block, j / block))
        return 0;
    return i == j ? 10.0 * n * block : 1.0 / (1 + (3 * i + 5 * j) % 11);
}

int main(int argc, char **argv)
{
    n = argc > 1 ? atoi(argv[1]) : 32;
    block = argc > 2 ? atoi(argv[2]) : 64;
    if (n < 1 || block < 1) {
        fprintf(stderr, "usage: sparselu [N [B]]\n");
        return 2;
    }
    double **m = calloc((size_t)n * n, sizeof *m);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            if (filled(i, j)) {
                double *b = m[i * n + j] = malloc(sizeof *b * block * block);
                for (int r = 0; r < block; r++)
                    for (int c = 0; c < block; c++)
                        b[r * block + c] = entry(i * block + r, j * block + c);
            }

    factor_matrix(m);

    /* Check: L * (U * x) = A * x for x = (1, 1/2, 1/3, ...). */
    int size = n * block;
    double *x = calloc(size, sizeof *x), *y = calloc(size, sizeof *y), error = 0;
#define LU(i, j) (m[((i) / block) * n + (j) / block] ? m[((i) / block) * n + (j) / block][((i) % block) * block + (j) % block] : 0)
    for (int i = 0; i < size; i++)
        x[i] = 1.0 / (i + 1);
    for (int i = 0; i < size; i++)
        for (int j = i; j < size; j++)
            y[i] += LU(i, j) * x[j];
    for (int i = 0; i < size; i++) {
        double left = y[i], right = 0;
        for (int j = 0; j < i; j++)
            left += LU(i, j) * y[j];
        for (int j = 0; j < size; j++)
            right += entry(i, j) * x[j];
        error = fmax(error, fabs(left - right) / fabs(right));
    }
    printf("sparselu %d %d: %ld tasks, error %s\n", n, block, tasks, error < 1e-10 ? "below 1e-10" : "TOO LARGE");
    return error < 1e-10 ? 0 : 1;
}
