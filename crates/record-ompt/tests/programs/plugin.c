/* A library that uses OpenMP, for a program that does not. */
#include <stdlib.h>

#include "work.h"

int run_plugin(int n) {
    int sum = 0;
    const char *each = getenv("PLUGIN_MILLISECONDS");
    double milliseconds = each ? atof(each) : 0;
#pragma omp parallel
#pragma omp single
    for (int i = 0; i < n; i++) {
#pragma omp task shared(sum)
        {
            WORK_NS(milliseconds * 1e6);
#pragma omp atomic
            sum++;
        }
    }
    return sum;
}
