/* Tasks that send and receive, on all threads at once: each of TASKS tasks of a rank exchanges one message with
 * its counterpart on the other rank. */
#include <mpi.h>
#include <stdlib.h>

#define TASKS 16

int main(int argc, char **argv)
{
    int level, rank, failed = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    if (level < MPI_THREAD_MULTIPLE)
        return 4;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    #pragma omp parallel
    #pragma omp single
    for (int task = 0; task < TASKS; task++) {
        #pragma omp task firstprivate(task) shared(failed)
        {
            int sent = task, got = -1;
            MPI_Request request;
            MPI_Isend(&sent, 1, MPI_INT, 1 - rank, task, MPI_COMM_WORLD, &request);
            MPI_Recv(&got, 1, MPI_INT, 1 - rank, task, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            if (got != task)
                #pragma omp atomic write
                failed = 1;
        }
    }
    MPI_Finalize();
    return failed != 0;
}
