/* Two threads compute until the file argv[2] exists; argv[1] gets the process id when they do. Another thread sleeps. */
#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "work.h"

static void *sleeps(void *unused) {
    for (;;)
        usleep(1000000);
    return unused;
}

int main(int count, char **arguments) {
    if (count < 3)
        return 2;
    pthread_t sleeper;
    pthread_create(&sleeper, 0, sleeps, 0);
    double sum = 0;
#pragma omp parallel num_threads(2) reduction(+ : sum)
    {
        WORK_NS(200 * MS);
        sum += 1;
#pragma omp barrier
#pragma omp master
        {
            FILE *file = fopen(arguments[1], "w");
            fprintf(file, "%d\n", (int)getpid());
            fclose(file);
        }
        while (access(arguments[2], F_OK))
            for (int i = 0; i < 1000; i++)
                sum += i;
    }
    return sum < 0;
}
