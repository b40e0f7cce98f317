/* A region whose threads spin for 400 ms, and then one of them kills the process. */
#include <omp.h>
#include <signal.h>
#include <unistd.h>

#include "work.h"

int main(void) {
#pragma omp parallel num_threads(2)
    {
        WORK_NS(400 * MS);
        if (omp_get_thread_num()) kill(getpid(), SIGKILL);
        pause();
    }
}
