/* Forked children that compute, and leave in different ways: silent_children. Each prints the CPU time that it has used, in
   nanoseconds. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WORK_NS 30000000L

static long used(void)
{
	struct timespec time;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return time.tv_sec * 1000000000L + time.tv_nsec;
}

__attribute__((noinline)) static void crunch(void)
{
	while (used() < WORK_NS)
		;
}

static void print_and_leave(int way)
{
	char text[32];
	int length = snprintf(text, sizeof text, "%ld\n", used());
	if (write(1, text, length) != length)
		abort();
	if (way == 0)
		_exit(0);
	/* The buffers of the parent are empty. */
	exit(0);
}

int main(void)
{
	for (int way = 0; way < 3; way++) {
		if (fork() == 0) {
			if (way == 2) {
				execlp("true", "true", (char *)0);
				_exit(1);
			}
			crunch();
			print_and_leave(way);
		}
	}
	int status = 0, failed = 0;
	while (wait(&status) > 0)
		failed |= status;
	return failed != 0;
}
