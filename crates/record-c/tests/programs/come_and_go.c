/* Threads that are initialized and freed while others are: none may take what belongs to another. */
#include "ovni_abi.h"
#include <pthread.h>

enum { THREADS = 4, TIMES = 100 };

static void *
thread(void *arg)
{
	for (int i = 0; i < TIMES; i++) {
		ovni_thread_init((pid_t) ((intptr_t) arg * TIMES + i + 1));
		emit_execute(-1, -1);
		emit_at(ovni_clock_now(), "OHe");
		ovni_thread_free();
	}
	return NULL;
}

int
main(void)
{
	pthread_t threads[THREADS];
	ovni_proc_init(1, "node.0", getpid());
	for (intptr_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, thread, (void *) i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	ovni_proc_fini();
	return 0;
}
