/* A thread that ends before it can be inspected. */
#include <pthread.h>

static void *body(void *argument) { return argument; }

int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, body, 0);
    return pthread_join(thread, 0);
}
