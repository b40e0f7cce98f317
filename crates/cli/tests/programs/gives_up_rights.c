/* A server that gives up its rights before it starts its threads: gives_up_rights USER. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *serve(void *unused)
{
	struct timespec time = {0, 5000000};
	pthread_mutex_lock(&mutex);
	nanosleep(&time, NULL);
	pthread_mutex_unlock(&mutex);
	return unused;
}

int main(int count, char **arguments)
{
	pthread_t threads[2];
	if (count < 2 || setuid((uid_t)atoi(arguments[1])))
		return 1;
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, serve, NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	puts("served");
	return 0;
}
