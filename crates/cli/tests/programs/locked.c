/* Three threads add under a lock. With -DPRINTS_ENVIRONMENT also prints the environment, without `_`. */
#include <pthread.h>
#include <stdio.h>

extern char **environ;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long sum;

static void *add(void *argument) {
    for (int i = 0; i < 20000; i++) {
        pthread_mutex_lock(&lock);
        sum += i & 7;
        pthread_mutex_unlock(&lock);
    }
    return argument;
}

int main(void) {
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) pthread_create(threads + i, 0, add, 0);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
#ifdef PRINTS_ENVIRONMENT
    for (char **entry = environ; *entry; entry++)
        if ((*entry)[0] != '_') puts(*entry);
#endif
    printf("%ld\n", sum);
    return 29;
}
