/* Blocked Cholesky factorisation, A = L * L^T, of a symmetric positive definite matrix, as tasks that
   depend on each other through the blocks that they read and write.

   Usage: cholesky [N [B]]       N: size of the matrix, B: size of a block (default 2048 64); B divides N

   Known by construction, with n = N / B:
     potrf tasks   n
     trsm tasks    n (n - 1) / 2
     syrk tasks    n (n - 1) / 2
     gemm tasks    n (n - 1) (n - 2) / 6
     all tasks     n (n + 1) (n + 2) / 6
   One thread creates all tasks, in a single construct. The critical path goes through every potrf. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static int block; /* rows of a block */
static long tasks;

/* L * L^T = A for one block on the diagonal; L replaces the lower half of A. */
static void factor_block(double *a)
{
    for (int k = 0; k < block; k++) {
        a[k * block + k] = sqrt(a[k * block + k]);
        for (int i = k + 1; i < block; i++)
            a[i * block + k] /= a[k * block + k];
        for (int i = k + 1; i < block; i++)
            for (int j = k + 1; j <= i; j++)
                a[i * block + j] -= a[i * block + k] * a[j * block + k];
    }
}

/* X * L^T = A; X replaces A. */
static void solve_block(const double *l, double *a)
{
    for (int i = 0; i < block; i++)
        for (int j = 0; j < block; j++) {
            double sum = a[i * block + j];
            for (int k = 0; k < j; k++)
                sum -= a[i * block + k] * l[j * block + k];
            a[i * block + j] = sum / l[j * block + j];
        }
}

/* C = C - A * B^T. */
static void update_block(const double *a, const double *b, double *c)
{
    for (int i = 0; i < block; i++)
        for (int j = 0; j < block; j++) {
            double sum = 0;
            for (int k = 0; k < block; k++)
                sum += a[i * block + k] * b[j * block + k];
            c[i * block + j] -= sum;
        }
}

static void potrf(double *a)
{
    tasks++;
#pragma omp task depend(inout : a[0]) firstprivate(a)
    factor_block(a);
}

static void trsm(double *l, double *a)
{
    tasks++;
#pragma omp task depend(in : l[0]) depend(inout : a[0]) firstprivate(l, a)
    solve_block(l, a);
}

static void syrk(double *a, double *c)
{
    tasks++;
#pragma omp task depend(in : a[0]) depend(inout : c[0]) firstprivate(a, c)
    update_block(a, a, c);
}

static void gemm(double *a, double *b, double *c)
{
    tasks++;
#pragma omp task depend(in : a[0], b[0]) depend(inout : c[0]) firstprivate(a, b, c)
    update_block(a, b, c);
}

static void factor_matrix(int n, double **a)
{
#pragma omp parallel
#pragma omp single
    for (int k = 0; k < n; k++) {
        potrf(a[k * n + k]);
        for (int i = k + 1; i < n; i++)
            trsm(a[k * n + k], a[i * n + k]);
        for (int i = k + 1; i < n; i++) {
            for (int j = k + 1; j < i; j++)
                gemm(a[i * n + k], a[j * n + k], a[i * n + j]);
            syrk(a[i * n + k], a[i * n + i]);
        }
    }
}

/* Entry (i, j) of the matrix: large on the diagonal, so that it is positive definite. */
static double entry(int i, int j, int size)
{
    return i == j ? size + 1.0 : 1.0 / (1 + abs(i - j));
}

int main(int argc, char **argv)
{
    int size = argc > 1 ? atoi(argv[1]) : 2048;
    block = argc > 2 ? atoi(argv[2]) : 64;
    if (size < 1 || block < 1 || size % block != 0) {
        fprintf(stderr, "usage: cholesky [N [B]]   with B > 0 dividing N\n");
        return 2;
    }
    int n = size / block;
    double **a = malloc(sizeof *a * n * n);
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++) {
            double *b = a[i * n + j] = malloc(sizeof *b * block * block);
            for (int r = 0; r < block; r++)
                for (int c = 0; c < block; c++)
                    b[r * block + c] = entry(i * block + r, j * block + c, size);
        }

    factor_matrix(n, a);

    /* Check: L * (L^T * x) = A * x for x = (1, 1/2, 1/3, ...). */
    double *x = calloc(size, sizeof *x), *y = calloc(size, sizeof *y), error = 0;
    for (int i = 0; i < size; i++)
        x[i] = 1.0 / (i + 1);
#define L(i, j) a[((i) / block) * n + (j) / block][((i) % block) * block + (j) % block]
    for (int i = 0; i < size; i++)
        for (int j = 0; j <= i; j++)
            y[j] += L(i, j) * x[i];
    for (int i = 0; i < size; i++) {
        double left = 0, right = 0;
        for (int j = 0; j <= i; j++)
            left += L(i, j) * y[j];
        for (int j = 0; j < size; j++)
            right += entry(i, j, size) * x[j];
        error = fmax(error, fabs(left - right) / fabs(right));
    }
    printf("cholesky %d %d: %ld tasks, error %s\n", size, block, tasks, error < 1e-10 ? "below 1e-10" : "TOO LARGE");
    return error < 1e-10 ? 0 : 1;
}
