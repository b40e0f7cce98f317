/* What a program on Nanos6 with MPI in its tasks tells: its runtime writes through libovni, its calls of MPI are
 * recorded by the wrapper. Rank 0 sends 300 ms late; rank 1 waits for it inside a task. It prints the longest time that it can
 * have waited, nanoseconds. */
#include <mpi.h>
#include <stdio.h>
#include <time.h>
#include "../../../record-c/tests/programs/ovni_abi.h"

static void event(const char *mcv, const void *payload, int size)
{
    struct ovni_ev ev = { 0 };
    ovni_ev_set_clock(&ev, ovni_clock_now());
    ovni_ev_set_mcv(&ev, mcv);
    if (size > 0)
        ovni_payload_add(&ev, payload, size);
    ovni_ev_emit(&ev);
}

static void define(uint32_t type, const char *label)
{
    uint8_t bytes[64];
    memcpy(bytes, &type, 4);
    strcpy((char *)bytes + 4, label);
    struct ovni_ev ev = { 0 };
    ovni_ev_set_clock(&ev, ovni_clock_now());
    ovni_ev_set_mcv(&ev, "6Yc");
    ovni_ev_jumbo_emit(&ev, bytes, 4 + strlen(label) + 1);
}

static void task(uint32_t id, uint32_t type, void (*body)(void))
{
    uint32_t create[2] = { id, type };
    event("6Tc", create, 8);
    event("6Tx", &id, 4);
    event("6t[", NULL, 0);
    body();
    event("6t]", NULL, 0);
    event("6Te", &id, 4);
}

static int rank, value;

static void rest(void)
{
    struct timespec t = { 0, 300000000 };
    nanosleep(&t, NULL);
}

static void exchange(void)
{
    if (rank == 0)
        MPI_Send(&value, 1, MPI_INT, 1, 7, MPI_COMM_WORLD);
    else {
        uint64_t before = ovni_clock_now();
        MPI_Recv(&value, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        printf("received in %llu\n", (unsigned long long)(ovni_clock_now() - before));
    }
}

int main(int argc, char **argv)
{
    char loom[64];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    snprintf(loom, sizeof loom, "node.%d", getpid());
    ovni_version_check_str("1.14.0");
    ovni_proc_init(1, loom, getpid());
    ovni_thread_init(syscall(SYS_gettid));
    ovni_thread_require("nanos6", "1.1.0");
    ovni_add_cpu(0, 0);
    struct { int32_t cpu, tid; uint64_t tag; } at = { 0, (int)syscall(SYS_gettid), 0 };
    event("OHx", &at, 16);
    define(1, "rest");
    define(2, "exchange");
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        task(1, 1, rest);
    task(2, 2, exchange);
    task(3, 1, rest);
    event("OHe", NULL, 0);
    ovni_flush();
    ovni_thread_free();
    ovni_proc_fini();
    MPI_Finalize();
    return 0;
}
