/* Forks after its first region. Both processes go on with OpenMP: 100 + 10 tasks and 50 tasks. */
#include "tasks.h"
#include <sys/wait.h>
int main(void)
{
    int status;
    run_tasks(100);
    if (fork() == 0) {
        run_tasks(50);
        exit(4);
    }
    wait(&status);
    run_tasks(10);
    printf("child %d\n", WEXITSTATUS(status));
    return 6;
}
