/* Virtual time (virtual_time.h), a library that is preloaded.

   A thread that works or sleeps waits for the clock, which a thread of this library drives that no recorder knows:

     all others at rest? ── no ──▶ look again
         │ yes
     spinning threads look once more, and change nothing
         │
     somebody is due? ── yes ──▶ the oldest such thread goes on
         │ no
     clock := next end of work or sleep, or expiry of a timer; signals

   So threads go on one after the other, and in one order.

   The recorder sees two CPUs, however many the real machine has.

   A thread is at rest if the kernel says that it sleeps, and has slept since the look before (it counts how often a thread
   went to sleep), with no signal to be handled. Threads of the runtime that spin call sched_yield, which waits here; or they
   call nothing, and are known by CPU time in which they did not read the clock. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "virtual_time.h"

enum { THREADS = 256, TIMERS = 1024 };
static const uint64_t NEVER = UINT64_MAX, SECOND = 1000000000;

/* Directly: the recorder has its own `syscall`. */
static long system_call(long number, long a, long b, long c, long d) {
    long result;
    register long r10 __asm__("r10") = d;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10) : "rcx", "r11", "memory");
    return result;
}
static pid_t self(void) { return (pid_t)system_call(SYS_gettid, 0, 0, 0, 0); }

/* Others have the CPU for a moment, and this one soon again, however many want it. */
static void pause_shortly(void) {
    struct timespec moment = {0, 20000};
    system_call(SYS_nanosleep, (long)&moment, 0, 0, 0);
}

static _Atomic uint64_t clock_ns;
/* What each reading adds to the clock: 1 with `VIRTUAL_TICK` set, so that times tell in which order threads did things. */
static uint64_t tick_ns;
/* How often the clock was read: threads that change nothing do not. */
static _Atomic uint64_t readings;

/* Threads that wait for the clock: until when, and whether they may go on. */
static struct { _Atomic uint64_t due; pid_t thread; _Atomic uint32_t goes_on; } waiting[THREADS];
/* Threads that wait for a word until a time at the latest. */
static struct { _Atomic uint64_t due; _Atomic uint32_t *word; } alarms[THREADS];
/* Changes when a thread waits for the clock, and when spinning threads are to look again. */
static _Atomic uint32_t begun, look;
/* Threads that sleep in real time. */
static _Atomic int dozing;

struct virtual_timer {
    pid_t thread;
    int number;
    union sigval value;
    _Atomic uint64_t next, every;
};
static struct virtual_timer timers[TIMERS];

/* How long a reading of the clock takes on this thread, and whether it waits for the clock. */
static __thread uint64_t reading_ns __attribute__((tls_model("initial-exec")));
static __thread int is_waiting __attribute__((tls_model("initial-exec")));

void virtual_readings_take(uint64_t ns) { reading_ns = ns; }

static void take_reading(void) {
    if (reading_ns && !is_waiting) VIRTUAL_WORK(reading_ns);
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    take_reading();
    return (int)system_call(SYS_gettimeofday, (long)time, (long)zone, 0, 0);
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    if (clock != CLOCK_MONOTONIC) return (int)system_call(SYS_clock_gettime, clock, (long)time, 0, 0);
    take_reading();
    uint64_t now = atomic_fetch_add(&clock_ns, tick_ns);
    atomic_fetch_add(&readings, 1);
    time->tv_sec = (time_t)(now / SECOND);
    time->tv_nsec = (long)(now % SECOND);
    return 0;
}

int timer_create(clockid_t clock, struct sigevent *event, timer_t *timer) {
    /* Numbers are not used again: a forked child may delete those of its parent. */
    static _Atomic int made;
    int own = atomic_fetch_add(&made, 1);
    if (clock != CLOCK_MONOTONIC || own >= TIMERS) {
        errno = EAGAIN;
        return -1;
    }
    atomic_store(&timers[own].next, NEVER);
    timers[own].thread = event->_sigev_un._tid;
    timers[own].number = event->sigev_signo;
    timers[own].value = event->sigev_value;
    *timer = (timer_t)(intptr_t)(own + 1);
    return 0;
}
int timer_settime(timer_t timer, int flags, const struct itimerspec *new, struct itimerspec *old) {
    struct virtual_timer *own = &timers[(intptr_t)timer - 1];
    uint64_t first = (uint64_t)new->it_value.tv_sec * SECOND + (uint64_t)new->it_value.tv_nsec;
    (void)old;
    atomic_store(&own->every, (uint64_t)new->it_interval.tv_sec * SECOND + (uint64_t)new->it_interval.tv_nsec);
    if (first && !(flags & TIMER_ABSTIME)) first += atomic_load(&clock_ns);
    atomic_store(&own->next, first ? first : NEVER);
    return 0;
}
int timer_delete(timer_t timer) {
    struct virtual_timer *own = &timers[(intptr_t)timer - 1];
    atomic_store(&own->next, NEVER);
    return 0;
}

/* What is known of another thread. */
struct other {
    pid_t thread;
    /* How often it has gone to sleep, and, of one that runs, its CPU time at a number of readings of the clock. */
    long slept;
    uint64_t cpu_ns, readings;
};

/* A thread that has used so much CPU time and has not read the clock spins. */
static const uint64_t SPINS_NS = 5000000;

static uint64_t cpu_of(pid_t thread) {
    struct timespec used = {0, 0};
    system_call(SYS_clock_gettime, (~(long)thread << 3) | 6, (long)&used, 0, 0);
    return (uint64_t)used.tv_sec * SECOND + (uint64_t)used.tv_nsec;
}

/* Whether a thread has slept, or spun, since it was looked at last. */
static int rests(struct other *other) {
    char path[64], text[4096];
    snprintf(path, sizeof path, "/proc/self/task/%d/status", other->thread);
    long file = system_call(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0);
    if (file < 0) return 1; /* It has ended. */
    long size = system_call(SYS_read, file, (long)text, sizeof text - 1, 0);
    system_call(SYS_close, file, 0, 0, 0);
    if (size <= 0) return 1;
    text[size] = 0;
    const char *state = strstr(text, "State:"), *pending = strstr(text, "SigPnd:"), *blocked = strstr(text, "SigBlk:");
    const char *switches = strstr(text, "\nvoluntary_ctxt_switches:");
    if (!state || !pending || !blocked || !switches) return 0;
    state = state + 6 + strspn(state + 6, " \t");
    if (*state == 'Z' || *state == 'X') return 1;
    int is_to_handle = (strtoull(pending + 7, 0, 16) & ~strtoull(blocked + 7, 0, 16)) != 0;
    long slept = strtol(switches + 25, 0, 10), before = other->slept;
    uint64_t now = atomic_load(&readings), used = cpu_of(other->thread);
    int has_slept = *state == 'S' && slept == before;
    other->slept = *state == 'S' ? slept : -1;
    if (other->cpu_ns == 0 || now != other->readings || is_to_handle) {
        other->cpu_ns = used;
        other->readings = now;
    }
    return !is_to_handle && (has_slept || (*state == 'R' && used - other->cpu_ns >= SPINS_NS));
}

static void wait_until_others_rest(void) {
    static struct other others[THREADS];
    static char entries[1 << 14];
    pid_t own = self();
    memset(others, 0, sizeof others);
    for (int all_rest = 0, looks = 0; !all_rest; looks++) {
        all_rest = atomic_load(&dozing) == 0;
        long directory = system_call(SYS_openat, AT_FDCWD, (long)"/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
        for (long size; (size = system_call(SYS_getdents64, directory, (long)entries, sizeof entries, 0)) > 0;)
            for (long at = 0; at < size;) {
                struct { uint64_t inode, offset; uint16_t size; uint8_t type; char name[]; } *entry = (void *)(entries + at);
                pid_t thread = (pid_t)strtol(entry->name, 0, 10);
                at += entry->size;
                if (thread <= 0 || thread == own) continue;
                struct other *other = others;
                while (other->thread && other->thread != thread) other++;
                if (!other->thread) {
                    other->slept = -1;
                    other->thread = thread;
                }
                all_rest &= rests(other);
            }
        system_call(SYS_close, directory, 0, 0, 0);
        if (!all_rest && looks > 0) pause_shortly();
    }
}

/* Lets threads that spin look again. */
static void let_look(void) {
    atomic_fetch_add(&look, 1);
    VIRTUAL_FUTEX(&look, FUTEX_WAKE, INT32_MAX);
}

/* Until what threads that spin look at is what it was. */
static void settle(void) {
    wait_until_others_rest();
    for (uint64_t before = NEVER; before != atomic_load(&readings);) {
        before = atomic_load(&readings);
        let_look();
        wait_until_others_rest();
    }
}

static void fire(struct virtual_timer *timer, uint64_t now) {
    siginfo_t info;
    memset(&info, 0, sizeof info);
    info.si_signo = timer->number;
    info.si_code = SI_TIMER;
    info.si_value = timer->value;
    uint64_t every = atomic_load(&timer->every);
    atomic_store(&timer->next, every ? now + every : NEVER);
    system_call(SYS_rt_tgsigqueueinfo, getpid(), timer->thread, timer->number, (long)&info);
}

/* The clock goes on to the next moment. */
static void advance(void) {
    uint64_t next = NEVER;
    for (int i = 0; i < THREADS; i++) {
        uint64_t own = atomic_load(&waiting[i].due), alarm = atomic_load(&alarms[i].due);
        if (own && own < next) next = own;
        if (alarm && alarm < next) next = alarm;
    }
    for (int i = 0; i < TIMERS; i++) {
        uint64_t own = atomic_load(&timers[i].next);
        if (own && own < next) next = own;
    }
    uint64_t now = atomic_load(&clock_ns);
    while (next > now && !atomic_compare_exchange_weak(&clock_ns, &now, next)) {}
    if (next < now) next = now;
    for (int i = 0; i < TIMERS; i++)
        if (timers[i].thread && atomic_load(&timers[i].next) <= next) {
            fire(&timers[i], next);
            wait_until_others_rest();
        }
    for (int i = 0; i < THREADS; i++) {
        uint64_t own = atomic_load(&alarms[i].due);
        if (own && own <= next) {
            VIRTUAL_FUTEX(alarms[i].word, FUTEX_WAKE, INT32_MAX);
            wait_until_others_rest();
        }
    }
}

/* Lets one thread go on, or the clock. */
static void step(void) {
    settle();
    uint64_t now = atomic_load(&clock_ns);
    int first = -1;
    for (int i = 0; i < THREADS; i++) {
        uint64_t due = atomic_load(&waiting[i].due);
        if (due && due <= now && (first < 0 || waiting[i].thread < waiting[first].thread)) first = i;
    }
    if (first < 0) return advance();
    atomic_store(&waiting[first].goes_on, 1);
    VIRTUAL_FUTEX(&waiting[first].goes_on, FUTEX_WAKE, 1);
    while (atomic_load(&waiting[first].goes_on)) pause_shortly();
}

static void *drive(void *unused) {
    for (;;) {
        uint32_t before = atomic_load(&begun);
        int is_waited_for = 0;
        for (int i = 0; i < THREADS; i++) is_waited_for |= atomic_load(&waiting[i].due) != 0;
        if (is_waited_for) step();
        else VIRTUAL_FUTEX(&begun, FUTEX_WAIT, before);
    }
    return unused;
}

static void start_driver(void) {
    int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) = dlsym(RTLD_NEXT, "pthread_create");
    uint64_t all = UINT64_MAX, before;
    pthread_t thread;
    system_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)&before, sizeof all);
    create(&thread, NULL, drive, NULL);
    system_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&before, 0, sizeof all);
}

/* Threads and timers of a forked child's parent are not in it. */
static void begin_child(void) {
    for (int i = 0; i < THREADS; i++) {
        atomic_store(&waiting[i].due, 0);
        atomic_store(&alarms[i].due, 0);
    }
    for (int i = 0; i < TIMERS; i++) atomic_store(&timers[i].next, NEVER);
    start_driver();
}

__attribute__((constructor)) static void begin(void) {
    struct timespec real;
    system_call(SYS_clock_gettime, CLOCK_MONOTONIC, (long)&real, 0, 0);
    atomic_store(&clock_ns, ((uint64_t)real.tv_sec + 1) * SECOND);
    tick_ns = getenv("VIRTUAL_TICK") != NULL;
    pthread_atfork(0, 0, begin_child);
    start_driver();
}

uint32_t *virtual_wait_begins(uint64_t ns) {
    int own = 0;
    is_waiting = 1;
    for (uint64_t is_free = 0; !atomic_compare_exchange_strong(&waiting[own].due, &is_free, NEVER); is_free = 0)
        own = (own + 1) % THREADS;
    waiting[own].thread = self();
    atomic_store(&waiting[own].due, atomic_load(&clock_ns) + ns);
    atomic_fetch_add(&begun, 1);
    VIRTUAL_FUTEX(&begun, FUTEX_WAKE, 1);
    return (uint32_t *)&waiting[own].goes_on;
}

void virtual_wait_is_over(uint32_t *goes_on) {
    atomic_store((_Atomic uint32_t *)goes_on, 0);
    for (int i = 0; i < THREADS; i++)
        /* The place is free from now on. */
        if ((uint32_t *)&waiting[i].goes_on == goes_on) atomic_store(&waiting[i].due, 0);
    let_look();
    is_waiting = 0;
}

int usleep(useconds_t microseconds) {
    if (microseconds) VIRTUAL_WORK((uint64_t)microseconds * 1000);
    return 0;
}

/* Others sleep in real time, for moments in which they are not at rest. */
int nanosleep(const struct timespec *time, struct timespec *left) {
    atomic_fetch_add(&dozing, 1);
    int failed = system_call(SYS_nanosleep, (long)time, (long)left, 0, 0) != 0;
    atomic_fetch_sub(&dozing, 1);
    errno = failed ? EINTR : errno;
    return -failed;
}
int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *left) {
    (void)clock;
    if (flags & TIMER_ABSTIME) return EINVAL;
    return nanosleep(time, left) ? EINTR : 0;
}

/* The machine has two CPUs: on one, waiting would be oversubscription. The runtime, which may bind threads to CPUs, asks with
   thread 0, and gets the kernel's answer. */
enum { VIRTUAL_CPUS = 2 };

int sched_getaffinity(pid_t thread, size_t size, cpu_set_t *cpus) {
    (void)thread;
    if (size < sizeof(uint64_t)) {
        errno = EINVAL;
        return -1;
    }
    memset(cpus, 0, size);
    *(unsigned char *)cpus = (1 << VIRTUAL_CPUS) - 1;
    return 0;
}

int sched_yield(void) {
    uint32_t now = atomic_load(&look);
    for (int i = 0; i < THREADS; i++)
        if (atomic_load(&waiting[i].due)) {
            VIRTUAL_FUTEX(&look, FUTEX_WAIT, now);
            return 0;
        }
    /* Nobody drives. */
    return (int)system_call(SYS_sched_yield, 0, 0, 0, 0);
}

/* Waits of the recorder's own threads for a word end by virtual time. */
long syscall(long number, ...) {
    va_list list;
    long a[6];
    va_start(list, number);
    for (int i = 0; i < 6; i++) a[i] = va_arg(list, long);
    va_end(list);
    if (number == SYS_sched_getaffinity && a[0] != 0)
        return sched_getaffinity((pid_t)a[0], (size_t)a[1], (cpu_set_t *)a[2]) ? -1 : (long)sizeof(uint64_t);
    const struct timespec *until = (const struct timespec *)a[3];
    int is_alarm = number == SYS_futex && (a[1] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET && !(a[1] & FUTEX_CLOCK_REALTIME) && until;
    int own = 0;
    uint64_t due_ns = 0;
    if (is_alarm) {
        due_ns = (uint64_t)until->tv_sec * SECOND + (uint64_t)until->tv_nsec;
        if (due_ns <= atomic_load(&clock_ns)) {
            errno = ETIMEDOUT;
            return -1;
        }
        for (uint64_t is_free = 0; !atomic_compare_exchange_strong(&alarms[own].due, &is_free, NEVER); is_free = 0)
            own = (own + 1) % THREADS;
        alarms[own].word = (_Atomic uint32_t *)a[0];
        atomic_store(&alarms[own].due, due_ns);
        a[3] = 0;
    }
    long result;
    register long r10 __asm__("r10") = a[3];
    register long r8 __asm__("r8") = a[4];
    register long r9 __asm__("r9") = a[5];
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
    if (is_alarm) {
        atomic_store(&alarms[own].due, 0);
        if (atomic_load(&clock_ns) >= due_ns) result = -ETIMEDOUT;
    }
    if (result < 0 && result > -4096) {
        errno = (int)-result;
        return -1;
    }
    return result;
}
