/* Tells everything that metadata can hold, emits events, and ends by the signal of its first argument, or by abort.
 * The second argument is the number of CPUs, and of labels; a third one another end. */
#include "ovni_abi.h"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static int ready[2];

static void
tell(int of)
{
	char text[64];
	emit_execute(0, -1);
	ovni_thread_require("nosv", "2.7.0");
	ovni_attr_set_boolean("nosv.can_breakdown", 0);
	ovni_mark_type(3, 0, "phase");
	for (int i = 1; i <= of; i++) {
		snprintf(text, sizeof(text), "solve \"%d\"", i);
		ovni_mark_label(3, i, text);
	}
	ovni_mark_type(4, OVNI_MARK_STACK, "depth");
	ovni_attr_set_str("solver.name", "first");
	ovni_attr_set_str("solver.name", "multigrid");
	ovni_attr_set_json("solver.levels", "[1, {\"cells\": 8}]");
	ovni_attr_set_double("solver.tolerance", 0.5);
}

static void *
second(void *unused)
{
	(void) unused;
	ovni_thread_init(getpid() + 1);
	tell(2);
	if (write(ready[1], "", 1) != 1)
		abort();
	for (;;)
		pause();
}

int
main(int argc, char **argv)
{
	int number = argc > 1 ? atoi(argv[1]) : 0, of = argc > 2 ? atoi(argv[2]) : 2;
	ovni_proc_init(0, "node0.1", getpid());
	ovni_thread_init(getpid());
	for (int cpu = 0; cpu < of; cpu++)
		ovni_add_cpu(cpu, 2 * cpu);
	tell(of);
	ovni_proc_set_rank(3, 8);
	pthread_t thread;
	char byte;
	if (pipe(ready) != 0 || pthread_create(&thread, NULL, second, NULL) != 0 || read(ready[0], &byte, 1) != 1)
		return 2;
	ovni_mark_set(3, 2);
	if (argc > 3 && strcmp(argv[3], "fault") == 0)
		*(volatile int *) NULL = 1;
	if (argc > 3 && strcmp(argv[3], "exit") == 0)
		_exit(4);
	if (argc > 3 && strcmp(argv[3], "exec") == 0)
		return execl("/bin/true", "true", (char *) NULL);
	if (argc > 3 && strcmp(argv[3], "limit") == 0) {
		/* The kernel ends it at the second limit. */
		struct rlimit limit = { 1, 1 };
		setrlimit(RLIMIT_CPU, &limit);
		for (volatile long spins = 0;; spins++)
			;
	}
	if (number == 0)
		abort();
	/* A shell's background job inherits an ignored SIGINT. */
	signal(number, SIG_DFL);
	kill(getpid(), number);
	for (;;)
		pause();
}
