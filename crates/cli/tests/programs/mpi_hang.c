/* Jobs whose ranks wait for each other, or for a rank that does not come; argv[1] names how. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BIG (1 << 20)

static int rank, ranks, value;
static char *big;

/* Every rank asks for a message before it sends one. */
static void receives(void) {
  int from = (rank + 1) % ranks, to = (rank + ranks - 1) % ranks;
  MPI_Recv(&value, 1, MPI_INT, from, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Send(&value, 1, MPI_INT, to, 7, MPI_COMM_WORLD);
}

/* The same with a request. */
static void requests(void) {
  MPI_Request request[2];
  int other = 1 - rank;
  if (rank > 1)
    return;
  MPI_Irecv(&value, 1, MPI_INT, other, 8, MPI_COMM_WORLD, &request[0]);
  MPI_Irecv(&value, 1, MPI_INT, other, 9, MPI_COMM_WORLD, &request[1]);
  if (rank == 0)
    MPI_Send(&value, 1, MPI_INT, other, 8, MPI_COMM_WORLD);
  MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
}

/* Messages that no buffer takes are sent before they are asked for. */
static void sends(void) {
  if (rank > 1)
    return;
  MPI_Send(big, BIG, MPI_CHAR, 1 - rank, 3, MPI_COMM_WORLD);
  MPI_Recv(big, BIG, MPI_CHAR, 1 - rank, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* The message has another tag. */
static void tags(void) {
  if (rank == 0)
    MPI_Recv(&value, 1, MPI_INT, 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  else if (rank == 1)
    MPI_Send(&value, 1, MPI_INT, 0, 6, MPI_COMM_WORLD);
}

/* Nobody sends to a receive from anybody. */
static void anybody(void) {
  if (rank == 0)
    MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  else
    MPI_Probe(0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* A barrier that rank 1 never comes to. */
static void member(void) {
  if (rank == 1)
    pause();
  MPI_Barrier(MPI_COMM_WORLD);
}

/* Operations in another order. */
static void order(void) {
  if (rank == 0) {
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  } else {
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

/* A nonblocking operation that rank 1 takes no part in; it waits for a message instead. */
static void nonblocking(void) {
  MPI_Request request;
  if (rank == 1) {
    MPI_Recv(&value, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return;
  }
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* An exposure epoch that nobody accesses. */
static void window(void) {
  MPI_Win win;
  MPI_Group world, other;
  int peer = 1 - rank, *memory;
  MPI_Win_allocate(sizeof value, sizeof value, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_incl(world, 1, &peer, &other);
  if (rank == 0) {
    MPI_Win_post(other, 0, win);
    MPI_Win_wait(win);
  } else {
    MPI_Recv(&value, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

/* A communicator of two ranks that only one of them makes. */
static void group(void) {
  MPI_Group world, both;
  MPI_Comm made;
  int members[] = {0, 1};
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_incl(world, 2, members, &both);
  if (rank == 1)
    MPI_Recv(&value, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Comm_create_group(MPI_COMM_WORLD, both, 0, &made);
}

/* Rank 1, as its launcher calls it, runs a team and never starts MPI. */
static void stays_away(void) {
  const char *names[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK"};
  for (int i = 0; i < 2; i++)
    if (getenv(names[i]) && atoi(getenv(names[i])) == 1) {
#pragma omp parallel num_threads(2)
      usleep(1);
      for (;;)
        pause();
    }
}

/* The same receives by the first threads of teams, for which the others wait. */
static void threads(void) {
#pragma omp parallel num_threads(2)
  {
#pragma omp master
    MPI_Recv(&value, 1, MPI_INT, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
#pragma omp barrier
  }
}

int main(int count, char **arguments) {
  static const struct {
    const char *name;
    void (*run)(void);
  } modes[] = {{"receives", receives}, {"requests", requests}, {"sends", sends},   {"tags", tags},
               {"anybody", anybody},   {"member", member},     {"order", order},   {"nonblocking", nonblocking},
               {"window", window},     {"threads", threads},   {"group", group}};
  int provided;
  if (count > 1 && !strcmp(arguments[1], "start"))
    stays_away();
  MPI_Init_thread(&count, &arguments, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Barrier(MPI_COMM_WORLD);
  big = calloc(1, BIG);
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
    if (count > 1 && !strcmp(modes[i].name, arguments[1]))
      modes[i].run();
  MPI_Finalize();
  return 0;
}
