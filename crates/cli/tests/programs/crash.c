/* Dies by SIGSEGV while tasks run. */
#include "tasks.h"
int main(void)
{
    run_tasks(100);
    *(volatile int *)8 = 1;
    return 0;
}
