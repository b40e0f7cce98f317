// Rank 1 comes late to every call that rank 0 waits in,; argv[1] selects the kind of call.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "late_rank.h"

static int rank;

static void collectives_on_objects(void) {
    MPI_Win window;
    MPI_File file;
    MPI_Comm copy, half;
    MPI_Group world, both;
    void *memory;
    int data[4] = {0};
    late(rank == 1); MPI_Win_allocate(4096, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    late(rank == 1); MPI_Win_fence(0, window);
    late(rank == 1); MPI_Win_free(&window);
    late(rank == 1); MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    late(rank == 1); MPI_Comm_split(copy, 0, rank, &half);
    MPI_Comm_group(copy, &world);
    MPI_Group_incl(world, 2, (int[]){0, 1}, &both);
    late(rank == 1); MPI_Comm_create_group(copy, both, 7, &half);
    late(rank == 1); MPI_File_open(copy, "waits.dat", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    late(rank == 1); MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    late(rank == 1); MPI_File_close(&file);
}

static void neighbours(void) {
    MPI_Comm ring;
    int in[2], out[2] = {1, 2};
    MPI_Cart_create(MPI_COMM_WORLD, 1, (int[]){2}, (int[]){1}, 0, &ring);
    late(rank == 1); MPI_Neighbor_allgather(out, 1, MPI_INT, in, 1, MPI_INT, ring);
    MPI_Request request;
    late(rank == 1); MPI_Ineighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, ring, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void messages(void) {
    static char large[1 << 20];
    int data = 0, flag = 0, other = 1 - rank;
    MPI_Request request;
    MPI_Status status;
    if (rank == 0) {
        late(rank == 1); MPI_Recv(&data, 1, MPI_INT, other, 1, MPI_COMM_WORLD, &status);
        late(rank == 1); MPI_Ssend(&data, 1, MPI_INT, other, 2, MPI_COMM_WORLD);
        late(rank == 1); MPI_Send(large, sizeof large, MPI_CHAR, other, 3, MPI_COMM_WORLD);
        late(rank == 1); MPI_Probe(other, 4, MPI_COMM_WORLD, &status);
        MPI_Recv(&data, 1, MPI_INT, other, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Irecv(&data, 1, MPI_INT, other, 5, MPI_COMM_WORLD, &request);
        late(rank == 1);
        while (!flag) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        late(rank == 1);
        for (flag = 0; !flag;) MPI_Iprobe(other, 6, MPI_COMM_WORLD, &flag, &status);
        MPI_Recv(&data, 1, MPI_INT, other, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv_init(&data, 1, MPI_INT, other, 7, MPI_COMM_WORLD, &request);
        MPI_Start(&request);
        late(rank == 1); MPI_Waitall(1, &request, MPI_STATUSES_IGNORE);
        MPI_Request_free(&request);
        late(rank == 1); MPI_Sendrecv(&flag, 1, MPI_INT, other, 8, &data, 1, MPI_INT, other, 8, MPI_COMM_WORLD, &status);
    } else {
        late(rank == 1); MPI_Send(&data, 1, MPI_INT, other, 1, MPI_COMM_WORLD);
        late(rank == 1); MPI_Recv(&data, 1, MPI_INT, other, 2, MPI_COMM_WORLD, &status);
        late(rank == 1); MPI_Recv(large, sizeof large, MPI_CHAR, other, 3, MPI_COMM_WORLD, &status);
        late(rank == 1); MPI_Send(&data, 1, MPI_INT, other, 4, MPI_COMM_WORLD);
        late(rank == 1); MPI_Send(&data, 1, MPI_INT, other, 5, MPI_COMM_WORLD);
        late(rank == 1); MPI_Send(&data, 1, MPI_INT, other, 6, MPI_COMM_WORLD);
        late(rank == 1); MPI_Send(&data, 1, MPI_INT, other, 7, MPI_COMM_WORLD);
        late(rank == 1); MPI_Sendrecv(&flag, 1, MPI_INT, other, 8, &data, 1, MPI_INT, other, 8, MPI_COMM_WORLD, &status);
    }
}

static void one_sided(void) {
    MPI_Win window;
    MPI_Group world, other;
    int *memory, value = 1;
    MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, (int[]){1 - rank}, &other);
    if (rank == 0) {
        MPI_Win_post(other, 0, window);
        late(rank == 1); MPI_Win_wait(window);
        late(rank == 1); MPI_Win_start(other, 0, window);
        MPI_Put(&value, 1, MPI_INT, 1, 0, 1, MPI_INT, window);
        MPI_Win_complete(window);
    } else {
        MPI_Win_start(other, 0, window);
        late(rank == 1);
        MPI_Put(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, window);
        MPI_Win_complete(window);
        late(rank == 1);
        MPI_Win_post(other, 0, window);
        MPI_Win_wait(window);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
        MPI_Put(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, window);
        MPI_Win_flush(0, window);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
        late(rank == 1);
        MPI_Win_unlock(0, window);
    } else {
        late(rank == 1); MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
        MPI_Get(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, window);
        MPI_Win_unlock(0, window);
    }
    MPI_Win_free(&window);
}

int main(int argc, char **argv) {
    const char *kind = argc > 1 ? argv[1] : "";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    share_turns();
    MPI_Barrier(MPI_COMM_WORLD);
    if (!strcmp(kind, "objects")) collectives_on_objects();
    if (!strcmp(kind, "neighbours")) neighbours();
    if (!strcmp(kind, "messages")) messages();
    if (!strcmp(kind, "one_sided")) one_sided();
    late(rank == 1);
    MPI_Finalize();
    return 0;
}
