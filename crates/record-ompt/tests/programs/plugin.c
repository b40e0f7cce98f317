/* A library that uses OpenMP, for a program that does not. */
int run_plugin(int n) {
    int sum = 0;
#pragma omp parallel
#pragma omp single
    for (int i = 0; i < n; i++) {
#pragma omp task shared(sum)
        {
#pragma omp atomic
            sum++;
        }
    }
    return sum;
}
