/* Stops the process that records it while it runs 200 regions of 100 tasks, and says whether that one stores its
   events. */
#include "tasks.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
int main(void)
{
    const char *drainer = getenv("TASKSCOPE_DRAINER");
    if (drainer && atoi(drainer) == getppid())
        puts("drained by its parent");
    fflush(stdout);
    for (int i = 0; i < 200; i++) {
        if (i == 50)
            kill(getppid(), SIGSTOP);
        run_tasks(100);
    }
    kill(getppid(), SIGCONT);
    return 3;
}
