/* A process with two living threads forks 20 children that end by `exit`, some after they have started and joined a thread of
   their own. A leak checker (-fsanitize=address) ends a child that it finds leaks in with a code of its own: leak_checked_children.
   Prints the number of children that ended otherwise than by code 0.
   The first fork waits until the threads are blocked: while one begins, AddressSanitizer allocates, and a child may hang at its exit
   (without a recorder, too). */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILDREN 20

static int ends[2];
static pid_t tids[2];

static void *wait_for_the_end(void *tid)
{
	char byte;
	__atomic_store_n((pid_t *)tid, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	if (read(ends[0], &byte, 1) != 1)
		abort();
	return NULL;
}

/* Until the thread is blocked in its read. */
static void wait_until_it_reads(pid_t *tid)
{
	char path[64];
	for (;;) {
		pid_t known = __atomic_load_n(tid, __ATOMIC_ACQUIRE);
		long call = -1, descriptor = -1;
		snprintf(path, sizeof path, "/proc/self/task/%d/syscall", (int)known);
		FILE *file = known ? fopen(path, "r") : NULL;
		if (file) {
			if (fscanf(file, "%ld %lx", &call, &descriptor) == 2 && call == SYS_read && descriptor == ends[0]) {
				fclose(file);
				return;
			}
			fclose(file);
		} else if (known) {
			usleep(500000); /* the kernel does not show calls */
			return;
		}
		usleep(1000);
	}
}

static void *do_little(void *nothing)
{
	usleep(1000);
	return nothing;
}

int main(void)
{
	pthread_t threads[2];
	if (pipe(ends) != 0)
		return 2;
	for (int i = 0; i < 2; i++)
		if (pthread_create(&threads[i], NULL, wait_for_the_end, &tids[i]) != 0)
			return 2;
	for (int i = 0; i < 2; i++)
		wait_until_it_reads(&tids[i]);
	int failed = 0;
	for (int i = 0; i < CHILDREN; i++) {
		pid_t child = fork();
		if (child == 0) {
			pthread_t own;
			if (i % 2 == 1 && pthread_create(&own, NULL, do_little, NULL) == 0)
				pthread_join(own, NULL);
			exit(0);
		}
		int status = 1;
		waitpid(child, &status, 0);
		failed += status != 0;
	}
	if (write(ends[1], "ab", 2) != 2)
		return 2;
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	printf("%d failed\n", failed);
	return failed != 0;
}
