/* Order between threads of a program that a test records: a thread goes on when it has seen another one wait in the kernel. */
#ifndef WAITING_H
#define WAITING_H
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Ids of threads that are about to wait, by a number of the program's; 0 is none. */
static volatile int waiting[8];

static inline void about_to_wait(int number)
{
	__atomic_store_n(&waiting[number], (int)syscall(SYS_gettid), __ATOMIC_SEQ_CST);
}

static inline int sleeps(int tid)
{
	char path[64], text[256] = "";
	snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
	FILE *file = fopen(path, "r");
	if (!file) {
		/* Of another process. */
		snprintf(path, sizeof path, "/proc/%d/stat", tid);
		file = fopen(path, "r");
	}
	if (!file)
		return 1;
	size_t bytes = fread(text, 1, sizeof text - 1, file);
	fclose(file);
	char *end = bytes ? strrchr(text, ')') : NULL;
	return end && end[2] == 'S';
}

/* Until that thread waits in the kernel. */
static inline void until_it_waits(int number)
{
	int tid, times = 0;
	while (!(tid = __atomic_load_n(&waiting[number], __ATOMIC_SEQ_CST)))
		sched_yield();
	while (times < 5) {
		times = sleeps(tid) ? times + 1 : 0;
		sched_yield();
	}
}

/* Works for so many milliseconds, without a wait. */
static inline void work(int milliseconds)
{
	struct timespec begin, now;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - begin.tv_sec) * 1000000000L + now.tv_nsec - begin.tv_nsec < milliseconds * 1000000L);
}

/* Until that thread waits in the kernel; then 60 ms of work. */
static inline void work_while_it_waits(int number)
{
	until_it_waits(number);
	work(60);
	__atomic_store_n(&waiting[number], 0, __ATOMIC_SEQ_CST);
}
#endif
