/* Threads, signals, a child process and memory: the same result in every run. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long sum;
static volatile sig_atomic_t signals;

static void count(int signal) {
    (void)signal;
    signals++;
}

static void *add(void *argument) {
    long own = 0, *numbers = malloc(1000 * sizeof *numbers);
    for (int round = 0; round < 2000; round++)
        for (int i = 0; i < 1000; i++) {
            numbers[i] = i ^ round;
            own += numbers[i] & 7;
        }
    free(numbers);
    pthread_mutex_lock(&lock);
    sum += own;
    pthread_mutex_unlock(&lock);
    return argument;
}

int main(void) {
    pthread_t threads[3];
    signal(SIGUSR1, count);
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, add, NULL);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    raise(SIGUSR1);
    int status = 0;
    pid_t child = fork();
    if (child == 0) _exit(11);
    waitpid(child, &status, 0);
    printf("%ld %d %d\n", sum, (int)signals, WEXITSTATUS(status));
    return 17;
}
