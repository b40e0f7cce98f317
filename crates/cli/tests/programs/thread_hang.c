/* Threads without OpenMP that hang: each holds a mutex and locks the other's. */
#include <pthread.h>

static pthread_mutex_t accounts = PTHREAD_MUTEX_INITIALIZER, journal = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both_hold_one;

static void *transfer(void *unused)
{
	pthread_mutex_lock(&accounts); /* holds accounts */
	pthread_barrier_wait(&both_hold_one);
	pthread_mutex_lock(&journal); /* waits for journal */
	return unused;
}

static void *replay(void *unused)
{
	pthread_mutex_lock(&journal); /* holds journal */
	pthread_barrier_wait(&both_hold_one);
	pthread_mutex_lock(&accounts); /* waits for accounts */
	return unused;
}

int main(void)
{
	pthread_t threads[2];
	pthread_barrier_init(&both_hold_one, NULL, 2);
	pthread_create(&threads[0], NULL, transfer, NULL);
	pthread_create(&threads[1], NULL, replay, NULL);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	return 0;
}
