/* Forks until no process can be started, behind a region's threads; prints the number of threads and processes. */
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
    int count = 0, process = 1, all[1000];
#pragma omp parallel reduction(+ : count)
    count++;
    int first = count;
    usleep(100000);
    while (count < 1000 && (process = fork()) > 0) all[count++] = process;
    if (!process) {
        pause();
        _exit(0);
    }
    printf("%d\n", count);
    fflush(stdout);
    while (count > first) {
        kill(all[--count], SIGKILL);
        waitpid(all[count], 0, 0);
    }
    _exit(6);
}
