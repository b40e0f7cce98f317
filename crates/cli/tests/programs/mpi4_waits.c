// Functions of MPI 4: rank 1 comes late to each; without MPI_Init, if built with SESSION.
#include <mpi.h>
#include <stdlib.h>

#include "late_rank.h"

static int rank;

int main(int argc, char **argv) {
    MPI_Comm comm = MPI_COMM_WORLD;
    share_turns();
#ifdef SESSION
    MPI_Session session;
    MPI_Group world;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &world);
    MPI_Group_rank(world, &rank);
    late(rank == 1);
    MPI_Comm_create_from_group(world, "waits", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
#else
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(comm, &rank);
    MPI_Barrier(comm);
#endif
    int data[64] = {0}, sum[64], other = 1 - rank;
    MPI_Request request;
    late(rank == 1); MPI_Allreduce_c(data, sum, 64, MPI_INT, MPI_SUM, comm);
    MPI_Barrier_init(comm, MPI_INFO_NULL, &request);
    for (int round = 0; round < 2; round++) {
        late(rank == 1); MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&request);
    if (rank == 1) {
        MPI_Psend_init(data, 2, 32, MPI_INT, other, 1, comm, MPI_INFO_NULL, &request);
        MPI_Start(&request);
        MPI_Pready(0, request);
        late(rank == 1);
        MPI_Pready_range(1, 1, request);
    } else {
        MPI_Precv_init(data, 2, 32, MPI_INT, other, 1, comm, MPI_INFO_NULL, &request);
        MPI_Start(&request);
        late(rank == 1);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
    if (rank == 1) {
        late(rank == 1); MPI_Send_c(data, 64, MPI_INT, other, 2, comm);
    } else {
        late(rank == 1); MPI_Recv_c(data, 64, MPI_INT, other, 2, comm, MPI_STATUS_IGNORE);
    }
#ifdef SESSION
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&session);
#else
    MPI_Finalize();
#endif
    return 0;
}
