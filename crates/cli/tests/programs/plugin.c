/* A library that brings OpenMP into a program that knows nothing of it: 40 tasks. */
#include "tasks.h"
int plugin(void)
{
    run_tasks(40);
    return 40;
}
