/* Kills itself, as `kill -9` would, after 50 regions of 100 tasks. */
#include "tasks.h"
#include <signal.h>
int main(void)
{
    for (int i = 0; i < 50; i++)
        run_tasks(100);
    kill(getpid(), SIGKILL);
    return 0;
}
