/* A parent and a forked child with a region each. */
#include <sys/wait.h>
#include <unistd.h>

#include "work.h"

static volatile long calls;
__attribute__((noinline)) void of_parent(void) {
#pragma omp parallel
    {
        WORK_NS(30 * MS);
        calls++;
    }
    calls++;
}
__attribute__((noinline)) void of_child(void) {
#pragma omp parallel
    {
        WORK_NS(30 * MS);
        calls++;
    }
    calls++;
}
int main(void) {
    of_parent();
    if (fork() == 0) {
        of_child();
        return 0;
    }
    of_parent();
    return wait(0) < 0;
}
