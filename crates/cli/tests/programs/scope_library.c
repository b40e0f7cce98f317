/* A library with a task reduction of a scope, an entry point that old runtimes lack. */
static int sum;

void inner(void) {
#pragma omp parallel
#pragma omp scope reduction(task, + : sum)
    sum++;
}
