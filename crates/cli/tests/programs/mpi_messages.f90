! Messages and a collective operation from Fortran. The module's name is MODULE: mpi or mpi_f08.
#ifdef F08
#define HANDLE(kind) type(kind)
#define SOURCE_OF(status) status%MPI_SOURCE
#define STATUS type(MPI_Status)
#else
#define HANDLE(kind) integer
#define SOURCE_OF(status) status(MPI_SOURCE)
#define STATUS integer, dimension(MPI_STATUS_SIZE)
#endif
program messages
  use MODULE
  implicit none
  integer :: error, rank, ranks, got, left, right
  HANDLE(MPI_Request) :: requests(2)
  HANDLE(MPI_Comm) :: copy
  STATUS :: its

  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
  left = mod(rank + ranks - 1, ranks)
  right = mod(rank + 1, ranks)
  call MPI_Irecv(got, 1, MPI_INTEGER, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, requests(1), error)
  call MPI_Isend(rank, 1, MPI_INTEGER, right, 1, MPI_COMM_WORLD, requests(2), error)
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, error)
  if (got /= left) error stop 3
  call MPI_Sendrecv(rank, 1, MPI_INTEGER, right, 2, got, 1, MPI_INTEGER, left, 2, MPI_COMM_WORLD, its, error)
  if (got /= left .or. SOURCE_OF(its) /= left) error stop 4
  call MPI_Send(rank, 1, MPI_INTEGER, right, 3, MPI_COMM_WORLD, error)
  call MPI_Recv(got, 1, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
  if (got /= left) error stop 5
  call MPI_Comm_dup(MPI_COMM_WORLD, copy, error)
  got = 1
  call MPI_Allreduce(MPI_IN_PLACE, got, 1, MPI_INTEGER, MPI_SUM, copy, error)
  if (got /= ranks) error stop 6
  call MPI_Finalize(error)
end program
