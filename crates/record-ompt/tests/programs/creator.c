/* A worker creates tasks: whoever wants to know where, has its stack for that. */
#include <omp.h>

int main(void) {
    int sum = 0;
#pragma omp parallel num_threads(2)
    if (omp_get_thread_num() == 1) {
        for (int i = 0; i < 100; i++) {
#pragma omp task shared(sum)
#pragma omp atomic
            sum += 1;
        }
    }
    return sum == 100 ? 0 : 1;
}
