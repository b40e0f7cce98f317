/* A program whose result is known, with signals and sleeps of its own: nothing that samples it may change
   what it prints. */
#include <math.h>
#include <omp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

static volatile sig_atomic_t ticks;
static void on_tick(int signal) { ticks++; }

static long fib(int n) {
    if (n < 2) return n;
    long x, y;
#pragma omp task shared(x) if (n > 12)
    x = fib(n - 1);
#pragma omp task shared(y) if (n > 12)
    y = fib(n - 2);
#pragma omp taskwait
    return x + y;
}

int main(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_tick;
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, NULL);
    struct itimerval every = {{0, 3000}, {0, 3000}};
    setitimer(ITIMER_REAL, &every, NULL);
    long result = 0;
    double sum = 0;
    omp_lock_t lock;
    omp_init_lock(&lock);
    for (int round = 0; round < 20; round++) {
#pragma omp parallel
#pragma omp single
        result += fib(18);
#pragma omp parallel for reduction(+ : sum) schedule(dynamic, 100)
        for (int i = 0; i < 100000; i++) sum += i % 7;
#pragma omp parallel
        for (int i = 0; i < 20; i++) {
            omp_set_lock(&lock);
            result++;
            omp_unset_lock(&lock);
            char *memory = malloc(1000 + i);
            memset(memory, i, 1000);
            free(memory);
        }
    }
    struct timespec little = {0, 1000000};
    while (ticks <= 3) nanosleep(&little, NULL);
    struct itimerval never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &never, NULL);
    int whole = poll(NULL, 0, 30) == 0;
    struct timespec nap = {0, 30000000};
    whole += nanosleep(&nap, NULL) == 0;
    printf("%ld %.0f %d whole, own signals came: %s\n", result, sum, whole, ticks > 3 ? "yes" : "no");
    return 0;
}
