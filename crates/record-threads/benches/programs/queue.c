/* A queue of one mutex, which four threads put items into and take them from: queue COUNT. Prints nanoseconds. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { THREADS = 4, ROOM = 1024 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;
static long items[ROOM], first, last, taken, most;

static void *work(void *unused)
{
	pthread_barrier_wait(&barrier);
	for (int is_done = 0; !is_done;) {
		pthread_mutex_lock(&mutex);
		if (last - first < ROOM)
			items[last++ % ROOM] = taken;
		pthread_mutex_unlock(&mutex);
		pthread_mutex_lock(&mutex);
		if (last > first)
			taken += items[first++ % ROOM] >= 0;
		is_done = taken >= most;
		pthread_mutex_unlock(&mutex);
	}
	return unused;
}

int main(int count, char **arguments)
{
	struct timespec begin, end;
	pthread_t threads[THREADS];
	most = count > 1 ? atol(arguments[1]) : 100000;
	pthread_barrier_init(&barrier, NULL, THREADS);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, work, NULL))
			return 1;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	clock_gettime(CLOCK_MONOTONIC, &end);
	printf("%lld\n", (end.tv_sec - begin.tv_sec) * 1000000000LL + end.tv_nsec - begin.tv_nsec);
	return 0;
}
