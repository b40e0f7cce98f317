/* fib(29) with a task for each call: 1 664 078 tasks. */
#include <stdio.h>
#include <stdlib.h>

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

int main(int argc, char **argv) {
#pragma omp parallel
#pragma omp single
    printf("%d\n", fib(argc > 1 ? atoi(argv[1]) : 29));
    return 0;
}
