/* A program that restricts its system calls and works on, in two threads.
   Arguments: how (`prctl`, `seccomp`, `refuse`), the action for all other calls (`sock_filter.k`), and optionally a program to
   execute then. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAY(call) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##call, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
static pthread_barrier_t both;
static volatile double sum;

static void work(void) {
    double own = 0;
    for (long i = 1; i < 60000000; i++) own += 1.0 / i;
    sum = own;
}

static void *second(void *x) {
    pthread_barrier_wait(&both);
    pthread_barrier_wait(&both);
    work();
    /* Does not end, which takes other calls. */
    for (;;) pthread_barrier_wait(&both);
    return x;
}

int main(int count, char **arguments) {
    struct sock_filter own[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        MAY(write), MAY(futex), MAY(exit), MAY(exit_group), MAY(munmap), MAY(madvise), MAY(fstat), MAY(newfstatat), MAY(brk),
        BPF_STMT(BPF_RET | BPF_K, strtoul(arguments[2], 0, 0)) };
    /* What a loader does, and a program of another kind. */
    struct sock_filter others[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        MAY(write), MAY(exit_group), MAY(munmap), MAY(fstat), MAY(newfstatat), MAY(brk), MAY(execve), MAY(openat), MAY(read),
        MAY(close), MAY(mmap), MAY(mprotect), MAY(pread64), MAY(arch_prctl), MAY(set_tid_address), MAY(set_robust_list), MAY(rseq),
        MAY(prlimit64), MAY(getrandom), MAY(access), MAY(readlink),
        BPF_STMT(BPF_RET | BPF_K, strtoul(arguments[2], 0, 0)) };
    struct sock_fprog program = { sizeof own / sizeof *own, own };
    /* Timers, files: by a list of what is refused. */
#define NOT(call) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##call, 0, 1), BPF_STMT(BPF_RET | BPF_K, strtoul(arguments[2], 0, 0))
    struct sock_filter listed[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        NOT(timer_create), NOT(timer_settime), NOT(timer_delete), NOT(openat), NOT(perf_event_open), NOT(fallocate), NOT(rename),
        NOT(unlink), NOT(mkdir), NOT(process_vm_readv), NOT(statx),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };
    if (!strcmp(arguments[1], "refuse")) program = (struct sock_fprog){ sizeof listed / sizeof *listed, listed };
    pthread_t thread;
    pthread_barrier_init(&both, 0, 2);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (count > 3) {
        struct sock_fprog program = { sizeof others / sizeof *others, others };
        if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) return 90;
        execl(arguments[3], arguments[3], (char *)0);
        return 91;
    }
    pthread_create(&thread, 0, second, 0);
    pthread_barrier_wait(&both);
    work();
    if (!strcmp(arguments[1], "prctl")) {
        if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, 0) != -1 || errno != EFAULT) return 92;
        if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) return 93;
    } else if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program))
        return 94;
    pthread_barrier_wait(&both);
    work();
    pthread_barrier_wait(&both);
    printf("%.1f\n", sum);
    return 13;
}
