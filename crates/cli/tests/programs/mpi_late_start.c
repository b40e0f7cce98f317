/* Rank 1, as its launcher calls it, comes late to the start of MPI. */
#include <mpi.h>

#include "late_rank.h"

int main(int argc, char **argv)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    if (!rank) rank = getenv("PMI_RANK");
    share_turns();
    late_by(rank && atoi(rank) == 1, LATE_AT_START_NS);
    MPI_Init(&argc, &argv);
    MPI_Finalize();
    return 0;
}
