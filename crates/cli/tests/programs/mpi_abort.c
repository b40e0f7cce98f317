/* Rank 1 ends the job while rank 0 computes: by MPI_Abort, or by an exit that the launcher takes for an error. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

static volatile double sum;

int main(int count, char **arguments) {
  int rank;
  MPI_Init(&count, &arguments);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Barrier(MPI_COMM_WORLD);
  for (long i = 0; rank == 0 || i < 300000000; i++)
    sum += i;
  if (count > 1 && !strcmp(arguments[1], "abort"))
    MPI_Abort(MPI_COMM_WORLD, 3);
  exit(3);
}
