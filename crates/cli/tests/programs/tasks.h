/* A region of two threads in which one creates `count` tasks. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static volatile int sink;

static void run_tasks(int count)
{
#pragma omp parallel num_threads(2)
#pragma omp single
    for (int i = 0; i < count; i++) {
#pragma omp task
        for (int k = 0; k < 1000; k++)
            sink += k;
    }
}
