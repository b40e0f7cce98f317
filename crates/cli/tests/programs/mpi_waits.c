// Rank 1 comes late to every call that rank 0 waits in, by LATE_MS each; argv[1] selects the kind of call.
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

static void collectives_on_objects(void) {
    MPI_Win window;
    MPI_File file;
    MPI_Comm copy, half;
    MPI_Group world, both;
    void *memory;
    int data[4] = {0};
    late(); MPI_Win_allocate(4096, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    late(); MPI_Win_fence(0, window);
    late(); MPI_Win_free(&window);
    late(); MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    late(); MPI_Comm_split(copy, 0, rank, &half);
    MPI_Comm_group(copy, &world);
    MPI_Group_incl(world, 2, (int[]){0, 1}, &both);
    late(); MPI_Comm_create_group(copy, both, 7, &half);
    late(); MPI_File_open(copy, "waits.dat", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    late(); MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    late(); MPI_File_close(&file);
}

static void neighbours(void) {
    MPI_Comm ring;
    int in[2], out[2] = {1, 2};
    MPI_Cart_create(MPI_COMM_WORLD, 1, (int[]){2}, (int[]){1}, 0, &ring);
    late(); MPI_Neighbor_allgather(out, 1, MPI_INT, in, 1, MPI_INT, ring);
    MPI_Request request;
    late(); MPI_Ineighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, ring, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void messages(void) {
    static char large[1 << 20];
    int data = 0, flag = 0, other = 1 - rank;
    MPI_Request request;
    MPI_Status status;
    if (rank == 0) {
        late(); MPI_Recv(&data, 1, MPI_INT, other, 1, MPI_COMM_WORLD, &status);
        late(); MPI_Ssend(&data, 1, MPI_INT, other, 2, MPI_COMM_WORLD);
        late(); MPI_Send(large, sizeof large, MPI_CHAR, other, 3, MPI_COMM_WORLD);
        late(); MPI_Probe(other, 4, MPI_COMM_WORLD, &status);
        MPI_Recv(&data, 1, MPI_INT, other, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Irecv(&data, 1, MPI_INT, other, 5, MPI_COMM_WORLD, &request);
        late();
        while (!flag) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        late();
        for (flag = 0; !flag;) MPI_Iprobe(other, 6, MPI_COMM_WORLD, &flag, &status);
        MPI_Recv(&data, 1, MPI_INT, other, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv_init(&data, 1, MPI_INT, other, 7, MPI_COMM_WORLD, &request);
        MPI_Start(&request);
        late(); MPI_Waitall(1, &request, MPI_STATUSES_IGNORE);
        MPI_Request_free(&request);
        late(); MPI_Sendrecv(&flag, 1, MPI_INT, other, 8, &data, 1, MPI_INT, other, 8, MPI_COMM_WORLD, &status);
    } else {
        late(); MPI_Send(&data, 1, MPI_INT, other, 1, MPI_COMM_WORLD);
        late(); MPI_Recv(&data, 1, MPI_INT, other, 2, MPI_COMM_WORLD, &status);
        late(); MPI_Recv(large, sizeof large, MPI_CHAR, other, 3, MPI_COMM_WORLD, &status);
        late(); MPI_Send(&data, 1, MPI_INT, other, 4, MPI_COMM_WORLD);
        late(); MPI_Send(&data, 1, MPI_INT, other, 5, MPI_COMM_WORLD);
        late(); MPI_Send(&data, 1, MPI_INT, other, 6, MPI_COMM_WORLD);
        late(); MPI_Send(&data, 1, MPI_INT, other, 7, MPI_COMM_WORLD);
        late(); MPI_Sendrecv(&flag, 1, MPI_INT, other, 8, &data, 1, MPI_INT, other, 8, MPI_COMM_WORLD, &status);
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
        late(); MPI_Win_wait(window);
        late(); MPI_Win_start(other, 0, window);
        MPI_Put(&value, 1, MPI_INT, 1, 0, 1, MPI_INT, window);
        MPI_Win_complete(window);
    } else {
        MPI_Win_start(other, 0, window);
        late();
        MPI_Put(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, window);
        MPI_Win_complete(window);
        late();
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
        late();
        MPI_Win_unlock(0, window);
    } else {
        late(); MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
        MPI_Get(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, window);
        MPI_Win_unlock(0, window);
    }
    MPI_Win_free(&window);
}

int main(int argc, char **argv) {
    const char *kind = argc > 1 ? argv[1] : "";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    share();
    MPI_Barrier(MPI_COMM_WORLD);
    if (!strcmp(kind, "objects")) collectives_on_objects();
    if (!strcmp(kind, "neighbours")) neighbours();
    if (!strcmp(kind, "messages")) messages();
    if (!strcmp(kind, "one_sided")) one_sided();
    late();
    MPI_Finalize();
    return 0;
}
