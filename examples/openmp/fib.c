/* Fibonacci numbers by nested tasks: far too fine a grain, to show what that costs.

   Usage: fib [N]       (default 20)

   Known by construction: every call but the first is a task, so there are 2 F(N + 1) - 2 tasks
   (F(0) = 0, F(1) = 1): 21 890 for N = 20, 1 664 078 for N = 29. */

#include <stdio.h>
#include <stdlib.h>

static long fib(int n)
{
    long a, b;
    if (n < 2)
        return n;
#pragma omp task shared(a) firstprivate(n)
    a = fib(n - 1);
#pragma omp task shared(b) firstprivate(n)
    b = fib(n - 2);
#pragma omp taskwait
    return a + b;
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 20;
    long result = 0, before = 0, expected = n > 0, next;
    if (n < 0 || n > 60) {
        fprintf(stderr, "usage: fib [N]   with 0 <= N <= 60\n");
        return 2;
    }
#pragma omp parallel
#pragma omp single
    result = fib(n);

    for (int i = 1; i < n; i++, before = expected, expected = next)
        next = before + expected;
    printf("fib(%d) = %ld %s\n", n, result, result == expected ? "as expected" : "WRONG");
    return result == expected ? 0 : 1;
}
