/* A process that is initialized again after its end, and threads that nobody frees. */
#include "ovni_abi.h"
#include <pthread.h>

static void *
thread(void *arg)
{
	ovni_thread_init((pid_t) syscall(SYS_gettid));
	emit_execute(-1, -1);
	emit_at(ovni_clock_now(), "OHe");
	return arg;
}

int
main(void)
{
	for (int round = 0; round < 2; round++) {
		ovni_proc_init(1, "node.0", getpid());
		ovni_thread_init((pid_t) syscall(SYS_gettid));
		ovni_add_cpu(0, 0);
		emit_execute(0, -1);
		pthread_t other;
		pthread_create(&other, NULL, thread, NULL);
		pthread_join(other, NULL);
		emit_at(ovni_clock_now(), "OHe");
		if (round == 0)
			ovni_thread_free();
		ovni_proc_fini();
	}
	exit(0);
}
