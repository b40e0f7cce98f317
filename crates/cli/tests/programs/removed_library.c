/* Two tasks of a function whose name is given. The library of the other name has another layout. */
static volatile long sum;

__attribute__((noinline)) void NAME(void) {
    for (long i = 0; i < 20000000; i++)
        sum += i;
}

#ifdef OTHER
__attribute__((noinline)) void not_called(void) {
    for (int i = 0; i < 9; i++)
        sum *= i;
}
#endif

void run(void) {
#pragma omp parallel num_threads(2)
#pragma omp single
    for (int i = 0; i < 2; i++)
#pragma omp task
        NAME();
}
