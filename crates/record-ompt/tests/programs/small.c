/* Small tasks: fib(18) with a task for each call (8360 of them), and one task from each of 512 call paths, more
   than a thread has rows for. Prints both results. */
#include <stdio.h>

static int fib(int n) {
    int x, y;
    if (n < 2) return n;
#pragma omp task shared(x)
    x = fib(n - 1);
#pragma omp task shared(y)
    y = fib(n - 2);
#pragma omp taskwait
    return x + y;
}

static int created;

static int walk(int path, int left);

__attribute__((noinline)) static int even(int path, int left) { return walk(path, left) + 1; }

__attribute__((noinline)) static int odd(int path, int left) { return walk(path, left) - 1; }

__attribute__((noinline)) static int walk(int path, int left) {
    if (left > 0) return (path & 1 ? odd(path >> 1, left - 1) : even(path >> 1, left - 1)) ^ 1;
#pragma omp task
    {
#pragma omp atomic
        created++;
    }
    return 1;
}

int main(void) {
    int result = 0;
#pragma omp parallel
#pragma omp single
    {
        for (int path = 0; path < 512; path++) walk(path, 9);
#pragma omp taskwait
        result = fib(18);
    }
    printf("%d %d\n", created, result);
    return created == 512 && result == 2584 ? 0 : 1;
}
