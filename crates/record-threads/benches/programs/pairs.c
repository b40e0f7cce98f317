/* Locks and unlocks a free mutex: pairs COUNT. Prints nanoseconds. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *other(void *unused)
{
	return unused;
}

int main(int count, char **arguments)
{
	long pairs = count > 1 ? atol(arguments[1]) : 1000000;
	struct timespec begin, end;
	pthread_t thread;
	/* The C library takes locks for cheaper while there has been one thread only. */
	if (pthread_create(&thread, NULL, other, NULL) || pthread_join(thread, NULL))
		return 1;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (long pair = 0; pair < pairs; pair++) {
		pthread_mutex_lock(&mutex);
		pthread_mutex_unlock(&mutex);
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	printf("%lld\n", (end.tv_sec - begin.tv_sec) * 1000000000LL + end.tv_nsec - begin.tv_nsec);
	return 0;
}
