/* A call path of 46 steps of one long name. */
#include "virtual_time.h"
static volatile double sink;
__attribute__((noinline)) void a_function_with_quite_a_long_name(int depth) {
    if (depth > 0)
        a_function_with_quite_a_long_name(depth - 1);
    else
        VIRTUAL_WORK(100000000);
    sink = depth;
}
int main(void) {
    a_function_with_quite_a_long_name(45);
#pragma omp parallel
    sink = 1;
    return 0;
}
