/* A consumer that is faster than its producer. */
#define _GNU_SOURCE
#include <pthread.h>

#include "waiting.h"

enum { ITEMS = 3 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t has_items = PTHREAD_COND_INITIALIZER;
static int items;

static void *produce(void *unused)
{
	for (int i = 0; i < ITEMS; i++) {
		work_while_it_waits(0);
		pthread_mutex_lock(&mutex);
		items++;
		pthread_mutex_unlock(&mutex);
		pthread_cond_signal(&has_items); /* delivers */
	}
	return unused;
}

int main(int count, char **arguments)
{
	pthread_t producer;
	pthread_create(&producer, NULL, produce, NULL);
	for (int i = 0; i < ITEMS; i++) {
		pthread_mutex_lock(&mutex);
		about_to_wait(0);
		while (!items)
			pthread_cond_wait(&has_items, &mutex); /* starves */
		items--;
		pthread_mutex_unlock(&mutex);
	}
	pthread_join(producer, NULL);
	puts(count > 1 ? arguments[1] : "");
	return 0;
}
