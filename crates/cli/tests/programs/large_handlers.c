/* A handler that takes much of the stack, and asks for the alternate stack, on threads that have none: it runs on theirs. */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>

enum { BYTES = 400000 };

static sem_t has_begun, is_installed;
static volatile int handled;

static void handle(int number)
{
	volatile unsigned char taken[BYTES];
	unsigned sum = 0;
	(void)number;
	for (int at = 0; at < BYTES; at += 512)
		taken[at] = 1;
	for (int at = 0; at < BYTES; at += 512)
		sum += taken[at];
	handled += sum == (BYTES + 511) / 512;
}

static void *run(void *unused)
{
	sem_post(&has_begun);
	sem_wait(&is_installed);
	raise(SIGUSR1);
	return unused;
}

int main(void)
{
	struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK};
	pthread_t thread;
	sem_init(&has_begun, 0, 0);
	sem_init(&is_installed, 0, 0);
	if (pthread_create(&thread, NULL, run, NULL))
		return 1;
	sem_wait(&has_begun);
	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
	sem_post(&is_installed);
	pthread_join(thread, NULL);
	printf("%d of 2\n", handled);
	return 0;
}
