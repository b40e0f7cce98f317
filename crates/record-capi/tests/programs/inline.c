/* Everything of taskscope.h, from two threads, a signal handler's point and a forked child included. */
#include "taskscope.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static uint32_t sweep, inner, residual, block;

static void *
work(void *arg)
{
	for (int i = 1; i <= 1000; i++) {
		struct taskscope_open span = taskscope_begin(sweep);
		uint32_t task = taskscope_task_create(block);
		struct taskscope_open running = taskscope_task_begin(task);
		struct taskscope_open nested = taskscope_begin(inner);
		taskscope_set(residual, -i);
		taskscope_point();
		taskscope_end(nested);
		taskscope_end(running);
		taskscope_end(span);
	}
	return arg;
}

int
main(void)
{
	if (taskscope_start(NULL) != 0)
		return 1;
	sweep = taskscope_span("sweep");
	inner = taskscope_span("inner");
	if (taskscope_span("sweep") != sweep || sweep == inner)
		return 2;
	residual = taskscope_value("residual");
	block = taskscope_task_type("block");
	pthread_t other;
	pthread_create(&other, NULL, work, NULL);
	work(NULL);
	pthread_join(other, NULL);

	/* Off: what is open still ends, nothing else is recorded. */
	struct taskscope_open open = taskscope_begin(sweep);
	taskscope_switch(0);
	taskscope_end(taskscope_begin(inner));
	taskscope_point();
	taskscope_end(open);
	taskscope_switch(1);

	uint64_t before = taskscope_clock();
	uint32_t words[4] = {1, 2, 3, 4};
	taskscope_event("OB.", words, 16);
	taskscope_data("OB.", "some data", 9);
	if (taskscope_clock() < before)
		return 3;

	pid_t child = fork();
	if (child == 0) {
		taskscope_end(taskscope_begin(inner));
		exit(0);
	}
	waitpid(child, NULL, 0);
	return 0;
}
