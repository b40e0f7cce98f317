/* Threads without a runtime that compute, then sleep. */
#include <pthread.h>
#include <time.h>
#include <unistd.h>
static volatile double sink;
__attribute__((noinline)) void busy(void) {
    for (int i = 0; i < 20000000; i++) sink += i;
}
__attribute__((noinline)) void rest(void) { usleep(100000); sink = 1; }
static void *run(void *nothing) { busy(); rest(); sink = 2; return nothing; }
int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, run, 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    return 0;
}
