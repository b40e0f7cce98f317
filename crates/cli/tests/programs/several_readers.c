/* A writer waits for three readers, which leave one after the other: each is in the way from the end of the one before. */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>

#include "waiting.h"

static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static sem_t reading, second, third;

static void *read_first(void *unused)
{
	pthread_rwlock_rdlock(&table); /* reads first */
	sem_post(&reading);
	work_while_it_waits(0);
	pthread_rwlock_unlock(&table);
	sem_post(&second);
	return unused;
}

static void *read_second(void *unused)
{
	pthread_rwlock_rdlock(&table); /* reads second */
	sem_post(&reading);
	while (sem_trywait(&second))
		sched_yield();
	work(60);
	pthread_rwlock_unlock(&table);
	sem_post(&third);
	return unused;
}

static void *read_third(void *unused)
{
	pthread_rwlock_rdlock(&table); /* reads third */
	sem_post(&reading);
	while (sem_trywait(&third))
		sched_yield();
	work(60);
	pthread_rwlock_unlock(&table);
	return unused;
}

int main(int count, char **arguments)
{
	void *(*routines[])(void *) = {read_first, read_second, read_third};
	pthread_t readers[3];
	sem_init(&reading, 0, 0);
	sem_init(&second, 0, 0);
	sem_init(&third, 0, 0);
	for (int i = 0; i < 3; i++)
		pthread_create(&readers[i], NULL, routines[i], NULL);
	for (int i = 0; i < 3; i++)
		sem_wait(&reading);
	about_to_wait(0);
	pthread_rwlock_wrlock(&table); /* writes */
	pthread_rwlock_unlock(&table);
	for (int i = 0; i < 3; i++)
		pthread_join(readers[i], NULL);
	puts(count > 1 ? arguments[1] : "");
	return 0;
}
