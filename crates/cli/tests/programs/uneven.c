/* Rounds of serial work and of a region whose threads work unequally long. */
#include <omp.h>
#include <stdlib.h>
#include <unistd.h>

#include "work.h"

int main(int count, char **words) {
    for (int round = 0; round < (count > 1 ? atoi(words[1]) : 4); round++) {
        WORK_NS(10 * MS);
#pragma omp parallel
        {
            WORK_NS(10 * MS * (1 + omp_get_thread_num()));
            usleep(5000);
        }
    }
    return 0;
}
