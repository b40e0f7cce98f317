/* A program that does not know that it is recorded: a thread computes, one waits in epoll_wait, one for a condition. It ends with its
   input, and prints how many of its calls were interrupted. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

static atomic_int interrupted;
static atomic_ulong sum;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;

static void __attribute__((noinline)) computes(void)
{
	for (int i = 0; i < 1000; i++)
		atomic_fetch_add_explicit(&sum, i, memory_order_relaxed);
}

static void *worker(void *unused)
{
	pthread_setname_np(pthread_self(), "worker");
	for (;;)
		computes();
	return unused;
}

static void __attribute__((noinline)) polls(int set)
{
	struct epoll_event event;
	if (epoll_wait(set, &event, 1, -1) < 0 && errno == EINTR)
		interrupted++;
}

static void *server(void *unused)
{
	pthread_setname_np(pthread_self(), "server");
	int set = epoll_create1(0);
	for (;;)
		polls(set);
	return unused;
}

static void __attribute__((noinline)) waits(void)
{
	pthread_mutex_lock(&mutex);
	for (;;)
		pthread_cond_wait(&never, &mutex);
}

static void *idle(void *unused)
{
	pthread_setname_np(pthread_self(), "idle");
	waits();
	return unused;
}

int main(void)
{
	pthread_t thread;
	void *(*routines[])(void *) = {worker, server, idle};
	for (int i = 0; i < 3; i++)
		pthread_create(&thread, NULL, routines[i], NULL);
	puts("ready");
	fflush(stdout);
	char byte;
	ssize_t got;
	while ((got = read(0, &byte, 1)) > 0 || (got < 0 && errno == EINTR))
		interrupted += got < 0;
	printf("%d interrupted\n", interrupted);
	return 0;
}
