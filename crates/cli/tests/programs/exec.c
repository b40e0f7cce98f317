/* Replaces itself: 20 tasks before, 30 after. */
#include "tasks.h"
int main(int argc, char **argv)
{
    run_tasks(argc > 1 ? 30 : 20);
    if (argc == 1)
        execl(argv[0], argv[0], "again", (char *)0);
    puts("second");
    return 9;
}
