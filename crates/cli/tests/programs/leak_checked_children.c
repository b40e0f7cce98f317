/* A process with two living threads forks 20 children that end by `exit`, some after they have started and joined a thread of
   their own. A leak checker (-fsanitize=address) ends a child that it finds leaks in with a code of its own: leak_checked_children.
   Prints the number of children that ended otherwise than by code 0. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILDREN 20

static int ends[2];

static void *wait_for_the_end(void *nothing)
{
	char byte;
	if (read(ends[0], &byte, 1) != 1)
		abort();
	return nothing;
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
		if (pthread_create(&threads[i], NULL, wait_for_the_end, NULL) != 0)
			return 2;
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
