/* Threads that hold one lock in turn: each works while all that come after it wait. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>

#include "waiting.h"

enum { THREADS = 4 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int first = 1;

static void *come(void *number)
{
	about_to_wait((int)(intptr_t)number);
	pthread_mutex_lock(&mutex); /* takes its turn */
	for (int other = 0; first && other < THREADS; other++)
		if (other != (intptr_t)number)
			until_it_waits(other);
	first = 0;
	work(20);
	pthread_mutex_unlock(&mutex);
	return number;
}

int main(int count, char **arguments)
{
	pthread_t threads[THREADS];
	for (intptr_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, come, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	puts(count > 1 ? arguments[1] : "");
	return 0;
}
