// Teams that are smaller than asked for, each by its own cause, and such as are not.
//   short_teams OUTER INNER TIMES
#include <omp.h>
#include <stdlib.h>

static volatile int sink;

int main(int argc, char **argv) {
    int outer = argc > 1 ? atoi(argv[1]) : 2, inner = argc > 2 ? atoi(argv[2]) : 3, times = argc > 3 ? atoi(argv[3]) : 5;
    for (int i = 0; i < times; i++) {
#pragma omp parallel num_threads(outer) // outer
        {
#pragma omp parallel num_threads(inner) // inner
            sink++;
            sink++;
        }
#pragma omp parallel num_threads(outer) if (sink < 0) // serial by its own wish
        sink++;
    }
    return 0;
}
