/* A thread holds a mutex and computes until the file argv[2] exists, and another one waits for the mutex; argv[1] gets the process id
   when it does. */
#include <pthread.h>

#include "waiting.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char **files;

static void *computes(void *unused)
{
	double sum = 0;
	pthread_mutex_lock(&mutex);
	about_to_wait(0);
	until_it_waits(1);
	FILE *file = fopen(files[1], "w");
	fprintf(file, "%d\n", (int)getpid());
	fclose(file);
	while (access(files[2], F_OK))
		for (int i = 0; i < 1000; i++)
			sum += i;
	pthread_mutex_unlock(&mutex);
	return sum < 0 ? files : unused;
}

int main(int count, char **arguments)
{
	pthread_t thread;
	files = arguments;
	if (count < 3)
		return 2;
	pthread_create(&thread, NULL, computes, NULL);
	while (!__atomic_load_n(&waiting[0], __ATOMIC_SEQ_CST))
		sched_yield();
	about_to_wait(1);
	pthread_mutex_lock(&mutex); /* waits */
	pthread_mutex_unlock(&mutex);
	pthread_join(thread, NULL);
	return 0;
}
