/* Threads that wait for each other, one way a run: thread_waits WAY. The lines that make others wait are marked. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include "waiting.h"

enum { MILLISECOND = 1000000, HELD = 60 * MILLISECOND };

static pthread_mutex_t cache_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t second_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive_mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_rwlock_t table_lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin_lock;
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t items;
static mtx_t c11_mutex;
static int is_ready;
static int word = 2;
static void nap(long ns)
{
	struct timespec time = {0, ns};
	nanosleep(&time, NULL); /* sleeps */
}

/* Until that thread waits in the kernel, and the time of a hold longer; asleep meanwhile. */
static void sleep_until_it_waits(int number)
{
	for (int times = 0; times < 5; nap(MILLISECOND)) {
		int tid = __atomic_load_n(&waiting[number], __ATOMIC_SEQ_CST);
		times = tid && sleeps(tid) ? times + 1 : 0;
	}
	nap(HELD);
}

static void *evict(void *unused)
{
	pthread_mutex_lock(&cache_mutex); /* holds the mutex */
	about_to_wait(0);
	sleep_until_it_waits(1);
	pthread_mutex_unlock(&cache_mutex);
	return unused;
}

static void *writer(void *unused)
{
	pthread_rwlock_wrlock(&table_lock); /* holds the table to write */
	about_to_wait(0);
	sleep_until_it_waits(1);
	pthread_rwlock_unlock(&table_lock);
	return unused;
}

static void *reader(void *unused)
{
	pthread_rwlock_rdlock(&table_lock); /* holds the table to read */
	about_to_wait(0);
	sleep_until_it_waits(1);
	pthread_rwlock_unlock(&table_lock);
	return unused;
}

static void *spinner(void *unused)
{
	pthread_spin_lock(&spin_lock); /* holds the spin lock */
	about_to_wait(0);
	while (!waiting[1])
		nap(MILLISECOND);
	nap(HELD);
	pthread_spin_unlock(&spin_lock);
	return unused;
}

static void *recursive(void *unused)
{
	pthread_mutex_lock(&recursive_mutex); /* holds the recursive mutex */
	pthread_mutex_lock(&recursive_mutex);
	about_to_wait(0);
	sleep_until_it_waits(1);
	pthread_mutex_unlock(&recursive_mutex);
	nap(HELD);
	pthread_mutex_unlock(&recursive_mutex);
	return unused;
}

/* Changes the word long before it wakes the thread that waits: a signal to that thread would end its wait at once. */
static void *changer(void *unused)
{
	sleep_until_it_waits(1);
	__atomic_store_n(&word, 1, __ATOMIC_SEQ_CST);
	nap(HELD);
	syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0); /* wakes the word's thread */
	return unused;
}

/* In a thread of C11, which the C library makes without pthread_create. */
static int c11_holder(void *unused)
{
	(void)unused;
	mtx_lock(&c11_mutex); /* holds the mutex of C11 */
	about_to_wait(0);
	sleep_until_it_waits(1);
	mtx_unlock(&c11_mutex);
	return 7;
}

static void *producer(void *unused)
{
	sleep_until_it_waits(1);
	pthread_mutex_lock(&cache_mutex);
	is_ready = 1;
	pthread_cond_signal(&ready); /* signals */
	pthread_mutex_unlock(&cache_mutex);
	return unused;
}

/* Signals, and keeps the mutex that the other thread needs. */
static void *holds_on(void *unused)
{
	sleep_until_it_waits(1);
	pthread_mutex_lock(&cache_mutex);
	is_ready = 1;
	pthread_cond_signal(&ready); /* signals and holds on */
	nap(HELD);
	pthread_mutex_unlock(&cache_mutex);
	return unused;
}

/* One of two threads that are woken at once, and need the same mutex then. The first to get it has it until the other one waits. */
static void one_of_two(int number)
{
	static int has_been_taken;
	pthread_mutex_lock(&cache_mutex);
	about_to_wait(number);
	while (!is_ready)
		pthread_cond_wait(&ready, &cache_mutex); /* waits in the herd */
	if (!has_been_taken++)
		sleep_until_it_waits(3 - number);
	pthread_mutex_unlock(&cache_mutex);
}

static void *rival(void *unused)
{
	one_of_two(2);
	return unused;
}

static void *wakes_both(void *unused)
{
	sleep_until_it_waits(1);
	sleep_until_it_waits(2);
	pthread_mutex_lock(&cache_mutex);
	is_ready = 1;
	pthread_cond_broadcast(&ready); /* wakes the herd */
	pthread_mutex_unlock(&cache_mutex);
	return unused;
}

static pthread_key_t key;

/* Works on after the routine of its thread. */
static void destruct(void *unused)
{
	(void)unused;
	sleep_until_it_waits(1);
}

static void *has_destructor(void *unused)
{
	pthread_setspecific(key, &key);
	return unused;
}

static void *leak(void *unused)
{
	pthread_mutex_lock(&second_mutex); /* takes the mutex and ends */
	return unused;
}

/* Signals for what nobody waits for. */
static void *wrong_signaller(void *unused)
{
	sleep_until_it_waits(1);
	pthread_mutex_lock(&cache_mutex);
	pthread_cond_signal(&ready); /* signals too early */
	pthread_mutex_unlock(&cache_mutex);
	nap(2 * HELD);
	return producer(unused);
}

static void *late(void *unused)
{
	sleep_until_it_waits(1);
	pthread_barrier_wait(&barrier); /* comes last */
	return unused;
}

static void *poster(void *unused)
{
	sleep_until_it_waits(1);
	sem_post(&items); /* posts */
	return unused;
}

static void *slow_child(void *unused)
{
	sleep_until_it_waits(1);
	return unused;
}

/* Holds the second mutex while it waits for the first. */
static void *between(void *unused)
{
	while (!waiting[0])
		nap(MILLISECOND);
	pthread_mutex_lock(&second_mutex); /* holds the second mutex */
	about_to_wait(2);
	pthread_mutex_lock(&cache_mutex);
	pthread_mutex_unlock(&cache_mutex);
	pthread_mutex_unlock(&second_mutex);
	return unused;
}

static pthread_t start(void *(*routine)(void *))
{
	pthread_t thread;
	if (pthread_create(&thread, NULL, routine, NULL))
		abort();
	return thread;
}

static void until_held(int number)
{
	while (!waiting[number])
		nap(MILLISECOND);
}

static void wait_ready(void)
{
	pthread_mutex_lock(&cache_mutex);
	about_to_wait(1);
	while (!is_ready)
		pthread_cond_wait(&ready, &cache_mutex); /* waits for the condition */
	pthread_mutex_unlock(&cache_mutex);
}

static void cleanup(void *mutex)
{
	pthread_mutex_unlock(mutex);
}

/* Is cancelled in its wait. */
static void *cancelled(void *unused)
{
	pthread_mutex_lock(&cache_mutex);
	pthread_cleanup_push(cleanup, &cache_mutex);
	about_to_wait(1);
	for (;;)
		pthread_cond_wait(&ready, &cache_mutex);
	pthread_cleanup_pop(1);
	return unused;
}

int main(int count, char **arguments)
{
	const char *way = count > 1 ? arguments[1] : "";
	struct timespec until;
	pthread_t thread = 0;
	pthread_spin_init(&spin_lock, PTHREAD_PROCESS_PRIVATE);
	pthread_barrier_init(&barrier, NULL, 2);
	sem_init(&items, 0, 0);
	mtx_init(&c11_mutex, mtx_timed);
	errno = 77;
	if (!strcmp(way, "mutex")) {
		thread = start(evict);
		until_held(0);
		about_to_wait(1);
		pthread_mutex_lock(&cache_mutex); /* waits for the mutex */
		pthread_mutex_unlock(&cache_mutex);
	} else if (!strcmp(way, "timed")) {
		thread = start(evict);
		until_held(0);
		clock_gettime(CLOCK_REALTIME, &until);
		if (pthread_mutex_timedlock(&cache_mutex, &until) != ETIMEDOUT)
			return 3;
		about_to_wait(1);
	} else if (!strcmp(way, "write")) {
		thread = start(reader);
		until_held(0);
		about_to_wait(1);
		pthread_rwlock_wrlock(&table_lock); /* waits to write */
		pthread_rwlock_unlock(&table_lock);
	} else if (!strcmp(way, "read")) {
		thread = start(writer);
		until_held(0);
		about_to_wait(1);
		pthread_rwlock_rdlock(&table_lock); /* waits to read */
		pthread_rwlock_unlock(&table_lock);
	} else if (!strcmp(way, "spin")) {
		thread = start(spinner);
		until_held(0);
		about_to_wait(1);
		pthread_spin_lock(&spin_lock); /* spins */
		pthread_spin_unlock(&spin_lock);
	} else if (!strcmp(way, "recursive")) {
		thread = start(recursive);
		until_held(0);
		about_to_wait(1);
		pthread_mutex_lock(&recursive_mutex); /* waits for the recursive mutex */
		pthread_mutex_unlock(&recursive_mutex);
	} else if (!strcmp(way, "c11")) {
		thrd_t holder;
		int result = 0;
		if (thrd_create(&holder, c11_holder, NULL) != thrd_success)
			return 3;
		until_held(0);
		about_to_wait(1);
		mtx_lock(&c11_mutex); /* waits for the mutex of C11 */
		mtx_unlock(&c11_mutex);
		if (thrd_join(holder, &result) != thrd_success || result != 7)
			return 4;
	} else if (!strcmp(way, "futex")) {
		thread = start(changer);
		about_to_wait(1);
		if (syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0)) /* waits for the word */
			return 3;
	} else if (!strcmp(way, "condition")) {
		thread = start(producer);
		wait_ready();
	} else if (!strcmp(way, "wrong")) {
		thread = start(wrong_signaller);
		wait_ready();
	} else if (!strcmp(way, "early")) {
		thread = start(holds_on);
		wait_ready();
	} else if (!strcmp(way, "herd")) {
		pthread_t other = start(rival);
		thread = start(wakes_both);
		one_of_two(1);
		pthread_join(other, NULL);
	} else if (!strcmp(way, "destructor")) {
		pthread_key_create(&key, destruct);
		thread = start(has_destructor);
		about_to_wait(1);
		pthread_join(thread, NULL); /* joins in the destructor */
		thread = 0;
	} else if (!strcmp(way, "leak")) {
		pthread_join(start(leak), NULL);
		thread = start(evict);
		until_held(0);
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += HELD;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		if (pthread_mutex_timedlock(&second_mutex, &until) != ETIMEDOUT) /* waits for the leaked mutex */
			return 3;
		about_to_wait(1);
	} else if (!strcmp(way, "barrier")) {
		thread = start(late);
		about_to_wait(1);
		pthread_barrier_wait(&barrier); /* waits in the barrier */
	} else if (!strcmp(way, "semaphore")) {
		thread = start(poster);
		about_to_wait(1);
		if (sem_wait(&items)) /* waits for an item */
			return 3;
	} else if (!strcmp(way, "join")) {
		thread = start(slow_child);
		about_to_wait(1);
		pthread_join(thread, NULL); /* joins */
		thread = 0;
	} else if (!strcmp(way, "chain")) {
		pthread_t first = start(evict);
		thread = start(between);
		until_held(2);
		about_to_wait(1);
		pthread_mutex_lock(&second_mutex); /* waits at the end of the chain */
		pthread_mutex_unlock(&second_mutex);
		pthread_join(first, NULL);
	} else if (!strcmp(way, "cancel")) {
		void *result = NULL;
		thread = start(cancelled);
		sleep_until_it_waits(1);
		pthread_cancel(thread);
		if (pthread_join(thread, &result) || result != PTHREAD_CANCELED)
			return 3;
		thread = 0;
		if (pthread_mutex_trylock(&cache_mutex))
			return 4;
	} else if (!strcmp(way, "leave")) {
		puts(way);
		fflush(stdout);
		_exit(0);
	} else if (!strcmp(way, "free")) {
		/* Nothing waits. */
		for (int round = 0; round < 1000; round++) {
			pthread_mutex_lock(&cache_mutex);
			pthread_rwlock_rdlock(&table_lock);
			pthread_rwlock_unlock(&table_lock);
			pthread_mutex_unlock(&cache_mutex);
			sem_post(&items);
			sem_wait(&items);
			pthread_cond_signal(&ready);
			pthread_spin_lock(&spin_lock);
			pthread_spin_unlock(&spin_lock);
		}
	} else {
		return 2;
	}
	if (errno != 77 && errno != ENOENT)
		return 5;
	if (thread)
		pthread_join(thread, NULL);
	puts(way);
	return 0;
}
