/* Undeferred tasks, whose bodies Clang puts into their creator. */
#include "virtual_time.h"
static volatile double sink;
static void make(void) {
#pragma omp task if(0)
    VIRTUAL_WORK(10000000);
    sink += 1;
}
int main(void) {
#pragma omp parallel
#pragma omp single
    for (int i = 0; i < 10; i++) make();
    return 0;
}
