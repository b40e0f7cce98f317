/* Three threads that hand items on, with a mutex and a condition between two: pipeline COUNT. Prints nanoseconds. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROOM = 4 };

struct queue {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	long items[ROOM], first, last;
};

static struct queue queues[2] = {
	{PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, {0}, 0, 0},
	{PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, {0}, 0, 0},
};
static long items, sum;

static void put(struct queue *queue, long item)
{
	pthread_mutex_lock(&queue->mutex);
	while (queue->last - queue->first == ROOM)
		pthread_cond_wait(&queue->changed, &queue->mutex);
	queue->items[queue->last++ % ROOM] = item;
	pthread_cond_broadcast(&queue->changed);
	pthread_mutex_unlock(&queue->mutex);
}

static long take(struct queue *queue)
{
	pthread_mutex_lock(&queue->mutex);
	while (queue->last == queue->first)
		pthread_cond_wait(&queue->changed, &queue->mutex);
	long item = queue->items[queue->first++ % ROOM];
	pthread_cond_broadcast(&queue->changed);
	pthread_mutex_unlock(&queue->mutex);
	return item;
}

static void *produce(void *unused)
{
	for (long i = 0; i < items; i++)
		put(&queues[0], i);
	return unused;
}

static void *pass(void *unused)
{
	for (long i = 0; i < items; i++)
		put(&queues[1], take(&queues[0]) + 1);
	return unused;
}

static void *consume(void *unused)
{
	for (long i = 0; i < items; i++)
		sum += take(&queues[1]);
	return unused;
}

int main(int count, char **arguments)
{
	void *(*stages[])(void *) = {produce, pass, consume};
	pthread_t threads[3];
	struct timespec begin, end;
	items = count > 1 ? atol(arguments[1]) : 10000;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (int i = 0; i < 3; i++)
		if (pthread_create(&threads[i], NULL, stages[i], NULL))
			return 1;
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	clock_gettime(CLOCK_MONOTONIC, &end);
	printf("%lld\n", (end.tv_sec - begin.tv_sec) * 1000000000LL + end.tv_nsec - begin.tv_nsec);
	return sum != items * (items + 1) / 2;
}
