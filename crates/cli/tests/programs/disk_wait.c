/* Writes through to the disk. Prints the number of calls that took 200 us and gave up the CPU, and the nanoseconds of all. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { CALLS = 20, BYTES = 1 << 16 };

static char data[BYTES];

int main(void)
{
	int file = open("written", O_RDWR | O_CREAT, 0600), waited = 0;
	long long all = 0;
	for (int i = 0; i < CALLS; i++) {
		struct rusage before, after;
		struct timespec begin, end;
		memset(data, i, BYTES);
		if (pwrite(file, data, BYTES, (off_t)i * BYTES) != BYTES)
			return 1;
		getrusage(RUSAGE_THREAD, &before);
		clock_gettime(CLOCK_MONOTONIC, &begin);
		if (fsync(file)) /* writes through */
			return 1;
		clock_gettime(CLOCK_MONOTONIC, &end);
		getrusage(RUSAGE_THREAD, &after);
		long long ns = (end.tv_sec - begin.tv_sec) * 1000000000LL + end.tv_nsec - begin.tv_nsec;
		all += ns;
		waited += ns >= 200000 && after.ru_nvcsw > before.ru_nvcsw;
	}
	printf("%d %lld\n", waited, all);
	return 0;
}
