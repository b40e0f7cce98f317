/* Ranks that come late to calls of which the other one is known to be in. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

/* What the waiting rank shares with the late one. */
static struct {
    int turn;
    pid_t process;
    /* Its CPU time right before the call. */
    uint64_t cpu_ns;
} *waiting;

/* CPU time, in the call, that the late rank leaves to the waiting one: a recorder that starts in the call needs more of it
   before it reads the time of the call. A rank that sleeps in its call is left MAX_LATE_US. */
enum { LATE_NS = 5000000, LATE_AT_START_NS = 100000000, MAX_LATE_US = 1000000, LOOK_US = 1000 };

static void share_turns(void) {
    int file = open("turn", O_RDWR | O_CREAT, 0600);
    if (ftruncate(file, sizeof *waiting)) abort();
    waiting = mmap(0, sizeof *waiting, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
}

static uint64_t cpu_time_of(pid_t process) {
    clockid_t clock;
    struct timespec used = {0, 0};
    if (!clock_getcpuclockid(process, &clock)) clock_gettime(clock, &used);
    return (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
}

/* Called by both ranks right before a call: the one that is late resumes when the other one computes in it, which MPI libraries
   do while they wait. So much CPU time passes before the call on no machine, however busy. */
static void late_by(int is_late, uint64_t late_ns) {
    static int rounds;
    rounds++;
    if (!is_late) {
        waiting->process = getpid();
        waiting->cpu_ns = cpu_time_of(0);
        __atomic_store_n(&waiting->turn, rounds, __ATOMIC_RELEASE);
        return;
    }
    while (__atomic_load_n(&waiting->turn, __ATOMIC_ACQUIRE) < rounds) usleep(LOOK_US);
    for (int us = 0; us < MAX_LATE_US && cpu_time_of(waiting->process) < waiting->cpu_ns + late_ns; us += LOOK_US) usleep(LOOK_US);
}

static void late(int is_late) { late_by(is_late, LATE_NS); }
