/* A kernel that runs long, and a copy that is large, on LLVM's plugin for the host. */

#include <omp.h>
#include <stdio.h>

static double values[1 << 22];

__attribute__((noinline)) void copy_much(void)
{
#pragma omp target map(tofrom : values)
    values[0] += 1;
}

__attribute__((noinline)) double compute_long(void)
{
    double sum = 0;
#pragma omp target map(tofrom : sum)
    for (long i = 1; i < 40000000; i++)
        sum += 1.0 / i;
    return sum;
}

int main(void)
{
    double sum = 0;
    for (int round = 0; round < 3; round++) {
        copy_much();
        sum += compute_long();
    }
    printf("%g\n", sum);
    return 0;
}
