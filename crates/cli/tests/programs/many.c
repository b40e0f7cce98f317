/* As many tasks as its argument says. */
#include "tasks.h"
int main(int argc, char **argv)
{
    int count = argc > 1 ? atoi(argv[1]) : 100;
    run_tasks(count);
    printf("%d tasks\n", count);
    return 3;
}
