/* An urgent thread waits for a lock of a minor one, which waits for the work of a third. */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>

#include "waiting.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static sem_t is_held, is_done;

static void *minor_thread(void *unused)
{
	pthread_mutex_lock(&mutex); /* holds the lock */
	sem_post(&is_held);
	about_to_wait(0);
	sem_wait(&is_done); /* waits for the work */
	pthread_mutex_unlock(&mutex);
	return unused;
}

static void *third_thread(void *unused)
{
	until_it_waits(0);
	work_while_it_waits(1);
	sem_post(&is_done); /* has worked */
	return unused;
}

int main(int count, char **arguments)
{
	pthread_t minor, third;
	sem_init(&is_held, 0, 0);
	sem_init(&is_done, 0, 0);
	pthread_create(&minor, NULL, minor_thread, NULL);
	sem_wait(&is_held);
	pthread_create(&third, NULL, third_thread, NULL);
	until_it_waits(0);
	about_to_wait(1);
	pthread_mutex_lock(&mutex); /* is urgent */
	pthread_mutex_unlock(&mutex);
	pthread_join(minor, NULL);
	pthread_join(third, NULL);
	puts(count > 1 ? arguments[1] : "");
	return 0;
}
