/* The least that stands before the C library's mutexes: it counts calls of each thread. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>

static int (*next_lock)(pthread_mutex_t *), (*next_unlock)(pthread_mutex_t *);
static __thread long locks __attribute__((tls_model("initial-exec")));
static __thread long unlocks __attribute__((tls_model("initial-exec")));

__attribute__((constructor)) static void look_up(void)
{
	next_lock = (int (*)(pthread_mutex_t *))dlsym(RTLD_NEXT, "pthread_mutex_lock");
	next_unlock = (int (*)(pthread_mutex_t *))dlsym(RTLD_NEXT, "pthread_mutex_unlock");
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	if (!next_lock)
		look_up();
	locks++;
	return next_lock(mutex);
}

int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	if (!next_unlock)
		look_up();
	unlocks++;
	return next_unlock(mutex);
}
