/* What an event costs through taskscope.h, thread CPU nanoseconds an event: minimum, median, maximum of
 * the rounds. Usage: inline_cost [ROUNDS]; TASKSCOPE_TRACE_DIR says where. */
#include "taskscope.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { EVENTS = 4000000, KINDS = 4, MAX_ROUNDS = 31 };
static const char *names[KINDS] = {"point", "16 bytes", "span (two events)", "point, switched off"};
static double results[KINDS][MAX_ROUNDS];

static double
cpu_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double) t.tv_sec * 1e9 + (double) t.tv_nsec;
}

static int
ascending(const void *a, const void *b)
{
	double x = *(const double *) a, y = *(const double *) b;
	return (x > y) - (x < y);
}

int
main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 7;
	if (rounds < 1 || rounds > MAX_ROUNDS || taskscope_start(NULL) != 0)
		return 1;
	uint32_t span = taskscope_span("span");
	uint64_t words[2] = {1, 2};
	for (int round = 0; round < rounds; round++) {
		for (int kind = 0; kind < KINDS; kind++) {
			taskscope_switch(kind != 3);
			double begin = cpu_ns();
			for (int i = 0; i < EVENTS; i++) {
				if (kind == 1)
					taskscope_event("OB.", words, 16);
				else if (kind == 2)
					taskscope_end(taskscope_begin(span));
				else
					taskscope_point();
			}
			results[kind][round] = (cpu_ns() - begin) / EVENTS;
		}
	}
	for (int kind = 0; kind < KINDS; kind++) {
		qsort(results[kind], (size_t) rounds, sizeof(double), ascending);
		printf("taskscope.h, 1 thread : %-22s %6.1f %6.1f %6.1f\n", names[kind], results[kind][0],
			results[kind][rounds / 2], results[kind][rounds - 1]);
	}
	return 0;
}
