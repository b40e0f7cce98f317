/* Threads that wait until the program ends, each in a call of another kind: open_waits WAY. The lines that wait are marked. */
#define _GNU_SOURCE
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "waiting.h"

enum { THREADS = 6 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static pthread_t threads[THREADS];

static void *accepts(void *unused)
{
	int server = socket(AF_INET, SOCK_STREAM, 0);
	listen(server, 5);
	about_to_wait(0);
	accept(server, NULL, NULL); /* accepts */
	return unused;
}

static void *polls(void *unused)
{
	struct epoll_event event;
	int set = epoll_create1(0);
	about_to_wait(1);
	epoll_wait(set, &event, 1, -1); /* polls */
	return unused;
}

static void *waits(void *unused)
{
	pthread_mutex_lock(&mutex);
	about_to_wait(2);
	for (;;)
		pthread_cond_wait(&never, &mutex); /* waits */
	return unused;
}

static void *reads(void *unused)
{
	int ends[2];
	char byte;
	if (pipe(ends))
		exit(2);
	about_to_wait(3);
	if (read(ends[0], &byte, 1) != 1) /* reads */
		exit(3);
	return unused;
}

static void *sleeps_long(void *unused)
{
	about_to_wait(4);
	sleep(10000); /* sleeps */
	return unused;
}

static void *joins(void *unused)
{
	about_to_wait(5);
	pthread_join(threads[4], NULL); /* joins */
	return unused;
}

static void until_all_wait(void)
{
	for (int number = 0; number < THREADS; number++)
		until_it_waits(number);
	/* That long each thread's wait lasts at least. */
	usleep(60000);
}

static void *ends(void *unused)
{
	until_it_waits(6);
	exit(0);
	return unused;
}

int main(int count, char **arguments)
{
	static void *(*const routines[THREADS])(void *) = {accepts, polls, waits, reads, sleeps_long, joins};
	const char *way = count > 1 ? arguments[1] : "";
	puts(way);
	fflush(stdout);
	for (int number = 0; number < THREADS; number++)
		if (pthread_create(&threads[number], NULL, routines[number], NULL))
			return 1;
	until_all_wait();
	if (!strcmp(way, "exit"))
		exit(0);
	if (!strcmp(way, "leave"))
		_exit(0);
	if (!strcmp(way, "other")) {
		pthread_t other;
		if (pthread_create(&other, NULL, ends, NULL))
			return 1;
		about_to_wait(6);
		pause(); /* pauses */
	}
	if (!strcmp(way, "killed"))
		pause();
	return 0;
}
