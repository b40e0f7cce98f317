/* Latency: two ranks that work in turn, over a slow link.
 *
 *   mpirun -n 2 latency [TURNS [WORK_MS [LINK_MS]]]      default 10 5 20
 *
 * A rank's turn is a task that works for WORK_MS, then sends; a message counts as arrived only LINK_MS after it was
 * sent (it is left with MPI until then). Known by construction: between two of its turns a rank waits for one turn
 * of the other and for two flights, WORK_MS + 2 * LINK_MS. The published formula (`direct`) sees the flight
 * that it waits for itself and calls the rest starvation; `root` sees that the other rank was waiting too. */
#include <mpi.h>
#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef struct { double sent_ns; long turn; } Token;

static Token in, out;
static MPI_Request request;
static omp_event_handle_t arrival;
static volatile int is_expected, over;
static double work_ms = 5, link_ms = 20;
static char turn_of;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static void rest(double ms)
{
    struct timespec t = { ms / 1000, 0 };
    t.tv_nsec = (ms - 1000.0 * t.tv_sec) * 1e6;
    nanosleep(&t, NULL);
}

/* Looks for the message that is expected; no worker. */
static void *look(void *unused)
{
    for (int come; !over; rest(0.05)) {
        if (!is_expected)
            continue;
        __sync_synchronize();
        MPI_Request_get_status(request, &come, MPI_STATUS_IGNORE);
        if (!come || now() < in.sent_ns + link_ms * 1e6)
            continue;
        omp_event_handle_t event = arrival;
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        is_expected = 0;
        omp_fulfill_event(event);
    }
    return unused;
}

static void receive(int from)
{
    omp_event_handle_t event = 0;
    #pragma omp task depend(inout : turn_of) detach(event) firstprivate(from)
    {
        MPI_Irecv(&in, sizeof in, MPI_BYTE, from, 0, MPI_COMM_WORLD, &request);
        arrival = event;
        __sync_synchronize();
        is_expected = 1;
    }
}

static void turn(int to)
{
    #pragma omp task depend(inout : turn_of) firstprivate(to)
    {
        rest(work_ms);
        out.sent_ns = now();
        MPI_Send(&out, sizeof out, MPI_BYTE, to, 0, MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv)
{
    int level, rank, ranks, turns = argc > 1 ? atoi(argv[1]) : 10;
    work_ms = argc > 2 ? atof(argv[2]) : work_ms;
    link_ms = argc > 3 ? atof(argv[3]) : link_ms;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    /* A team of one thread runs tasks at once, without waiting for messages. */
    if (ranks != 2 || level < MPI_THREAD_MULTIPLE || omp_get_max_threads() < 2) {
        fputs("latency: needs two ranks of two threads at least, and MPI_THREAD_MULTIPLE\n", stderr);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    pthread_t looker;
    pthread_create(&looker, NULL, look, NULL);
    #pragma omp parallel
    #pragma omp single
    for (int number = 0; number < turns; number++) {
        if (rank == 1)
            receive(0);
        turn(1 - rank);
        if (rank == 0)
            receive(1);
    }
    over = 1;
    pthread_join(looker, NULL);
    MPI_Finalize();
    return 0;
}
