/* Four threads that last until they have been inspected. */
#include <pthread.h>
#include <unistd.h>

static void *body(void *argument) {
    sleep(1);
    return argument;
}

int main(void) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(threads + i, 0, body, 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
    return 3;
}
