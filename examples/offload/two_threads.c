/* Two threads offload ten constructs each, as in issue 54 of Intel's PTI: each waits for its own, and the
 * copies and kernels of both reach the device at the same time.
 *
 *     clang-19 -g -fopenmp -fopenmp-targets=x86_64-pc-linux-gnu two_threads.c -o two_threads \
 *         -L/usr/lib/llvm-19/lib -Wl,-rpath,/usr/lib/llvm-19/lib
 *     taskscope record -- ./two_threads
 *
 * With that target LLVM's plugin for the host is the device. */
#include <omp.h>
#include <stdio.h>

int main(void) {
    double sum = 0;
    int on_host = 1;
#pragma omp target map(from : on_host)
    on_host = omp_is_initial_device();
#pragma omp parallel num_threads(2) reduction(+ : sum)
    for (int iteration = 0; iteration < 10; iteration++) {
        double x = omp_get_thread_num();
#pragma omp target map(tofrom : x)
        for (int step = 0; step < 1000; step++) x += 0.001;
        sum += x;
    }
    printf("%.1f on the %s\n", sum, on_host ? "host" : "device");
    return 0;
}
