// Functions of MPI 4: rank 1 comes late to each by LATE_MS; without MPI_Init, if built with SESSION.
#include <fcntl.h>
#include <mpi.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static int rank, *turn;

// Rank 1 goes on LATE_MS after rank 0 has come here.
static void late(void) {
    static int rounds;
    rounds++;
    if (rank == 0) {
        __atomic_store_n(turn, rounds, __ATOMIC_RELEASE);
    } else {
        while (__atomic_load_n(turn, __ATOMIC_ACQUIRE) < rounds) usleep(1000);
        usleep(LATE_MS * 1000);
    }
}

// The ranks share a file.
static void share(void) {
    int file = open("turn", O_RDWR | O_CREAT, 0600);
    if (ftruncate(file, sizeof *turn)) abort();
    turn = mmap(0, sizeof *turn, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
}

int main(int argc, char **argv) {
    MPI_Comm comm = MPI_COMM_WORLD;
    share();
#ifdef SESSION
    MPI_Session session;
    MPI_Group world;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &world);
    MPI_Group_rank(world, &rank);
    late();
    MPI_Comm_create_from_group(world, "waits", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
#else
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(comm, &rank);
    MPI_Barrier(comm);
#endif
    int data[64] = {0}, sum[64], other = 1 - rank;
    MPI_Request request;
    late(); MPI_Allreduce_c(data, sum, 64, MPI_INT, MPI_SUM, comm);
    MPI_Barrier_init(comm, MPI_INFO_NULL, &request);
    for (int round = 0; round < 2; round++) {
        late(); MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&request);
    if (rank == 1) {
        MPI_Psend_init(data, 2, 32, MPI_INT, other, 1, comm, MPI_INFO_NULL, &request);
        MPI_Start(&request);
        MPI_Pready(0, request);
        late();
        MPI_Pready_range(1, 1, request);
    } else {
        MPI_Precv_init(data, 2, 32, MPI_INT, other, 1, comm, MPI_INFO_NULL, &request);
        MPI_Start(&request);
        late();
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
    if (rank == 1) {
        late(); MPI_Send_c(data, 64, MPI_INT, other, 2, comm);
    } else {
        late(); MPI_Recv_c(data, 64, MPI_INT, other, 2, comm, MPI_STATUS_IGNORE);
    }
#ifdef SESSION
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&session);
#else
    MPI_Finalize();
#endif
    return 0;
}
