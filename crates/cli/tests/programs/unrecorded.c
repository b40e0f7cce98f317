/* Threads in calls that are not recorded, or only behind wrappers: unrecorded WAY. */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "waiting.h"

enum { MILLISECOND = 1000000, LONG = 300 * MILLISECOND };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t written = PTHREAD_COND_INITIALIZER;
static int is_written;
static int word;

/* A system call of the program's own instruction, which nothing can intercept. */
static long futex_of_its_own(int *address, long operation, long value, const struct timespec *time)
{
#ifdef __x86_64__
	register long r10 __asm__("r10") = (long)time;
	long result;
	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(SYS_futex), "D"(address), "S"(operation), "d"(value), "r"(r10)
			 : "rcx", "r11", "memory");
	return result;
#else
	register long x8 __asm__("x8") = SYS_futex;
	register long x0 __asm__("x0") = (long)address;
	register long x1 __asm__("x1") = operation;
	register long x2 __asm__("x2") = value;
	register long x3 __asm__("x3") = (long)time;
	__asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
	return x0;
#endif
}

static long now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000L + time.tv_nsec;
}

/* Asleep for so long; signals end each call. */
static void sleep_unseen(long ns)
{
	for (long left, end = now() + ns; (left = end - now()) > 0;) {
		struct timespec time = {0, left};
		futex_of_its_own(&word, FUTEX_WAIT_PRIVATE, 0, &time);
	}
}

static void my_mutex_lock(pthread_mutex_t *of)
{
	pthread_mutex_lock(of);
	__asm__ volatile("");
}

static void my_cond_wait(pthread_cond_t *condition, pthread_mutex_t *of)
{
	pthread_cond_wait(condition, of);
	__asm__ volatile("");
}

static void my_cond_signal(pthread_cond_t *condition)
{
	pthread_cond_signal(condition);
	__asm__ volatile("");
}

static void *log_writer(void *unused)
{
	pthread_setname_np(pthread_self(), "log_writer");
	until_it_waits(1);
	sleep_unseen(LONG);
	my_mutex_lock(&mutex);
	is_written = 1;
	my_cond_signal(&written); /* wakes */
	pthread_mutex_unlock(&mutex);
	return unused;
}

static void *commit(void *unused)
{
	my_mutex_lock(&mutex);
	about_to_wait(1);
	while (!is_written)
		my_cond_wait(&written, &mutex); /* waits for the log */
	pthread_mutex_unlock(&mutex);
	/* The last wait of a thread that ends soon after it is none for work. */
	sleep_unseen(LONG);
	return unused;
}

static void *holds(void *unused)
{
	my_mutex_lock(&mutex); /* holds the mutex */
	about_to_wait(0);
	until_it_waits(1);
	sleep_unseen(LONG);
	pthread_mutex_unlock(&mutex);
	return unused;
}

/* Defined by a library in the place of liburing. */
__attribute__((weak)) int io_uring_submit_and_wait(void *ring, unsigned least);

static void *waits_for_ring(void *unused)
{
	io_uring_submit_and_wait(NULL, 0); /* submits */
	io_uring_submit_and_wait(NULL, 1); /* waits for the ring */
	return unused;
}

static void *sleeps_unseen(void *unused)
{
	sleep_unseen(LONG);
	return unused;
}

int main(int count, char **arguments)
{
	const char *way = count > 1 ? arguments[1] : "";
	void *(*all[2])(void *) = {0};
	if (!strcmp(way, "waker"))
		all[0] = log_writer, all[1] = commit;
	else if (!strcmp(way, "ring"))
		all[0] = waits_for_ring;
	else if (!strcmp(way, "unseen"))
		all[0] = sleeps_unseen;
	else if (!strcmp(way, "holder"))
		all[0] = holds;
	pthread_t threads[2];
	for (int i = 0; i < 2 && all[i]; i++)
		pthread_create(&threads[i], NULL, all[i], NULL);
	if (all[0] == holds) {
		while (!__atomic_load_n(&waiting[0], __ATOMIC_SEQ_CST))
			sched_yield();
		about_to_wait(1);
		my_mutex_lock(&mutex); /* waits for the mutex */
		pthread_mutex_unlock(&mutex);
	}
	for (int i = 0; i < 2 && all[i]; i++)
		pthread_join(threads[i], NULL);
	puts(way);
	return 0;
}
