/* Two threads hand a turn over: each reads the clock after it has seen the other's turn. Prints how often a reading was
 * earlier than the one before. With an argument, one of them has no recorder. On a busy machine a turn may take a slice of
 * a CPU: then there are fewer. */
#include "ovni_abi.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

enum { MIN_TURNS = 1000, TURNS = 100000, SPINS = 2000, SECONDS = 2 };

static atomic_long turn, back, without_recorder, is_over;
static _Atomic uint64_t last;
static time_t start;

static void *
thread(void *arg)
{
	long own = (intptr_t) arg;
	if (own == 0 || !without_recorder)
		ovni_thread_init((pid_t) (own + 1));
	for (long i = 0;; i++) {
		for (long spins = 0; atomic_load(&turn) % 2 != own; spins++)
			if (spins % SPINS == SPINS - 1)
				sched_yield();
		if (own == 0 && (i == TURNS || (i >= MIN_TURNS && time(NULL) > start + SECONDS)))
			is_over = 1;
		if (is_over)
			break;
		uint64_t now = ovni_clock_now();
		if (now < atomic_load_explicit(&last, memory_order_relaxed))
			back++;
		atomic_store_explicit(&last, now, memory_order_relaxed);
		atomic_fetch_add(&turn, 1);
	}
	atomic_fetch_add(&turn, 1);
	if (ovni_thread_isready())
		ovni_thread_free();
	return NULL;
}

int
main(int argc, char **argv)
{
	(void) argv;
	without_recorder = argc > 1;
	pthread_t threads[2];
	start = time(NULL);
	ovni_proc_init(1, "node.0", getpid());
	for (intptr_t i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, thread, (void *) i);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	ovni_proc_fini();
	printf("%ld of %ld turns back\n", (long) back, (long) turn - 2);
	return 0;
}
