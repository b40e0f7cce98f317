/* Rank 0 waits, in the way that argv[1] names, for rank 1, which computes for argv[3] milliseconds and then ends the job as argv[2] says. */
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define BIG (1 << 20)

static volatile double sum;

static void waits(const char *way) {
  static char big[BIG];
  int value = 0;
  if (!strcmp(way, "barrier"))
    MPI_Barrier(MPI_COMM_WORLD);
  else if (!strcmp(way, "bcast"))
    MPI_Bcast(&value, 1, MPI_INT, 1, MPI_COMM_WORLD);
  else if (!strcmp(way, "receive"))
    MPI_Recv(&value, 1, MPI_INT, 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  else if (!strcmp(way, "send"))
    MPI_Send(big, BIG, MPI_CHAR, 1, 5, MPI_COMM_WORLD);
  else if (!strcmp(way, "request")) {
    MPI_Request request;
    MPI_Irecv(&value, 1, MPI_INT, 1, 5, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else if (!strcmp(way, "finalize"))
    MPI_Finalize();
  exit(0);
}

int main(int count, char **arguments) {
  int rank;
  MPI_Init(&count, &arguments);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Barrier(MPI_COMM_WORLD);
  if (count < 4)
    return 2;
  if (rank == 0)
    waits(arguments[1]);
  double end = MPI_Wtime() + atoi(arguments[3]) / 1000.0;
  while (MPI_Wtime() < end)
    sum += 1;
  if (!strcmp(arguments[2], "abort"))
    MPI_Abort(MPI_COMM_WORLD, 3);
  raise(SIGKILL);
  return 0;
}
