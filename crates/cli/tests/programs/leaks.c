/* Two threads compute; with an argument, 77 bytes are leaked. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static void *work(void *argument) {
    volatile double sum = 0;
    for (int i = 0; i < 3000000; i++) sum += i;
    return argument;
}

int main(int count, char **words) {
    pthread_t thread;
    pthread_create(&thread, 0, work, 0);
    work(0);
    pthread_join(thread, 0);
    void *volatile leaked = count > 1 ? malloc(77) : 0;
    leaked = 0;
    puts("done");
    return 3;
}
