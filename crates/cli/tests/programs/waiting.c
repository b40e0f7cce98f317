/* One thread of two offloads what takes long; the other waits for it at the end of the region. */

#include <omp.h>
#include <stdio.h>

__attribute__((noinline)) static double compute(void)
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
#pragma omp parallel num_threads(2) reduction(+ : sum)
    if (omp_get_thread_num() == 0)
        sum += compute() + compute();
    printf("%.1f\n", sum);
    return 0;
}
