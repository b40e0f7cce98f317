/* A process that is initialized again after its end, and threads that nobody frees; with an argument all are freed. */
#include "ovni_abi.h"
#include <pthread.h>

static int frees_all;

static void *
thread(void *arg)
{
	ovni_thread_init((pid_t) syscall(SYS_gettid));
	emit_execute(-1, -1);
	emit_at(ovni_clock_now(), "OHe");
	if (frees_all)
		ovni_thread_free();
	return arg;
}

int
main(int argc, char **argv)
{
	(void) argv;
	frees_all = argc > 1;
	for (int round = 0; round < 2; round++) {
		ovni_proc_init(1, "node.0", getpid());
		ovni_thread_init((pid_t) syscall(SYS_gettid));
		ovni_add_cpu(0, 0);
		emit_execute(0, -1);
		pthread_t other;
		pthread_create(&other, NULL, thread, NULL);
		pthread_join(other, NULL);
		emit_at(ovni_clock_now(), "OHe");
		if (frees_all || round == 0)
			ovni_thread_free();
		ovni_proc_fini();
	}
	exit(0);
}
