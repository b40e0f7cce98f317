/* Rank and CPUs are set before any thread is initialized; the program ends while a thread emits. */
#include "ovni_abi.h"
#include <pthread.h>
#include <stdatomic.h>

static atomic_int emitted;

static void *
thread(void *arg)
{
	ovni_thread_init((pid_t) syscall(SYS_gettid));
	emit_execute(0, -1);
	for (;;) {
		emit_at(ovni_clock_now(), "OB.");
		ovni_mark_set(1, 7);
		atomic_fetch_add(&emitted, 1);
	}
	return arg;
}

int
main(void)
{
	ovni_proc_init(1, "node.0", getpid());
	if (getenv("EARLY")) {
		ovni_proc_set_rank(2, 5);
		ovni_add_cpu(0, 6);
		ovni_add_cpu(1, 9);
	}
	pthread_t other;
	pthread_create(&other, NULL, thread, NULL);
	while (atomic_load(&emitted) < 1000)
		usleep(100);
	exit(0);
}
