/* A region with one task. */
int main(void) {
#pragma omp parallel
#pragma omp single
#pragma omp task
    {
    }
    return 0;
}
