/* Every way of MPI to send and receive, with what each rank must have got. On n >= 2 ranks, each rank sends
 * 11 messages of 4 bytes to its right neighbour and receives as many from the left. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CHECK(condition) \
    do { if (!(condition)) { fprintf(stderr, "line %d: %s\n", __LINE__, #condition); MPI_Abort(MPI_COMM_WORLD, 3); } } while (0)

int main(int argc, char **argv)
{
    int level, rank, size, value, flag, count, index, indices[2];
    MPI_Status status, statuses[2];
    MPI_Request requests[2];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int right = (rank + 1) % size, left = (rank + size - 1) % size, got[2] = {-1, -1}, sent[2] = {rank, rank + 100};

    /* 1: blocking, wildcards, no status (small messages are buffered) */
    MPI_Send(sent, 1, MPI_INT, right, 1, MPI_COMM_WORLD);
    MPI_Recv(got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(got[0] == left);
    MPI_Barrier(MPI_COMM_WORLD);

    /* 2: both in one call */
    MPI_Sendrecv(sent, 1, MPI_INT, right, 2, got, 1, MPI_INT, left, 2, MPI_COMM_WORLD, &status);
    CHECK(got[0] == left && status.MPI_SOURCE == left && status.MPI_TAG == 2);
    /* 3 */
    value = rank;
    MPI_Sendrecv_replace(&value, 1, MPI_INT, right, 3, left, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(value == left);

    /* 4, 5: two receives for the same messages, the second one completed first */
    MPI_Irecv(&got[0], 1, MPI_INT, MPI_ANY_SOURCE, 4, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(&got[1], 1, MPI_INT, left, 4, MPI_COMM_WORLD, &requests[1]);
    MPI_Request out[2];
    MPI_Isend(&sent[0], 1, MPI_INT, right, 4, MPI_COMM_WORLD, &out[0]);
    MPI_Issend(&sent[1], 1, MPI_INT, right, 4, MPI_COMM_WORLD, &out[1]);
    MPI_Wait(&requests[1], &status);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    CHECK(got[0] == left && got[1] == left + 100);
    MPI_Waitall(2, out, MPI_STATUSES_IGNORE);

    /* 6, 7: waitany, testsome */
    MPI_Irecv(&got[0], 1, MPI_INT, left, 6, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(&got[1], 1, MPI_INT, left, 7, MPI_COMM_WORLD, &requests[1]);
    MPI_Send(sent, 1, MPI_INT, right, 7, MPI_COMM_WORLD);
    MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
    CHECK(index == 1 && got[1] == left);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Send(sent, 1, MPI_INT, right, 6, MPI_COMM_WORLD);
    for (count = 0; count == 0; )
        MPI_Testsome(2, requests, &count, indices, statuses);
    CHECK(count == 1 && indices[0] == 0 && got[0] == left);

    /* 8: probed and matched */
    MPI_Message message;
    MPI_Send(sent, 1, MPI_INT, right, 8, MPI_COMM_WORLD);
    MPI_Mprobe(MPI_ANY_SOURCE, 8, MPI_COMM_WORLD, &message, &status);
    MPI_Mrecv(got, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
    CHECK(got[0] == left);

    /* 9, 10: prepared once, started twice */
    MPI_Send_init(sent, 1, MPI_INT, right, 9, MPI_COMM_WORLD, &requests[0]);
    MPI_Recv_init(got, 1, MPI_INT, left, 9, MPI_COMM_WORLD, &requests[1]);
    for (int round = 0; round < 2; round++) {
        got[0] = -1;
        MPI_Startall(2, requests);
        if (round == 0)
            MPI_Waitall(2, requests, statuses);
        else
            for (flag = 0; !flag; )
                MPI_Testall(2, requests, &flag, MPI_STATUSES_IGNORE);
        CHECK(got[0] == left);
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);

    /* 11: in a communicator whose ranks run the other way */
    MPI_Comm reversed, half;
    MPI_Comm_split(MPI_COMM_WORLD, 0, size - rank, &reversed);
    int own;
    MPI_Comm_rank(reversed, &own);
    MPI_Send(sent, 1, MPI_INT, (own + size - 1) % size, 11, reversed);
    MPI_Recv(got, 1, MPI_INT, (own + 1) % size, 11, reversed, &status);
    CHECK(got[0] == left);

    /* nobody: no messages */
    MPI_Send(sent, 1, MPI_INT, MPI_PROC_NULL, 12, MPI_COMM_WORLD);
    MPI_Recv(got, 1, MPI_INT, MPI_PROC_NULL, 12, MPI_COMM_WORLD, &status);
    /* cancelled: no message */
    MPI_Irecv(got, 1, MPI_INT, left, 99, MPI_COMM_WORLD, &requests[0]);
    MPI_Cancel(&requests[0]);
    MPI_Wait(&requests[0], &status);
    MPI_Test_cancelled(&status, &flag);
    CHECK(flag);

    /* collective operations, one of them nonblocking, one in a part of the job */
    value = 1;
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_SUM, reversed);
    CHECK(value == size);
    MPI_Bcast(&value, 1, MPI_INT, size - 1, MPI_COMM_WORLD);
    /* in place: count and datatype of the buffer that is not there are not read */
    int every[size], counts[size], places[size], is_root = rank == 0;
    for (int i = 0; i < size; i++)
        every[i] = rank, counts[i] = 1, places[i] = i;
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, every, counts, places, MPI_INT, MPI_COMM_WORLD);
    CHECK(every[left] == left && every[right] == right);
    MPI_Gatherv(is_root ? MPI_IN_PLACE : &rank, is_root ? 0 : 1, is_root ? MPI_DATATYPE_NULL : MPI_INT,
                every, counts, places, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Scatter(every, 1, MPI_INT, is_root ? MPI_IN_PLACE : &value, is_root ? 0 : 1,
                is_root ? MPI_DATATYPE_NULL : MPI_INT, 0, MPI_COMM_WORLD);
    CHECK(is_root || value == rank);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &half);
    MPI_Ibarrier(half, &requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Comm_free(&half);
    MPI_Comm_free(&reversed);
    MPI_Finalize();
    return 0;
}
