/* Work of a known kind, by threads that may have no CPU. At its end it prints, in milliseconds, the time of all its threads on
 * CPUs and their run delay since main began. */
#define _GNU_SOURCE
#include <dirent.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double cells[64 * 64];
static double sum;

static __attribute__((noinline)) double compute(int steps)
{
	double value = 1;
	for (int i = 1; i < steps; i++)
		value = value * 0.999 + 1.0 / i;
	return value;
}

/* Many short regions, with a barrier each. */
static void short_regions(int rounds)
{
	for (int round = 0; round < rounds; round++) {
#pragma omp parallel for
		for (int i = 0; i < 64; i++)
			cells[i * 64] += compute(500);
	}
}

/* One thread of the team has nearly all the work. */
static void one_works(int rounds)
{
	for (int round = 0; round < rounds; round++) {
#pragma omp parallel
		cells[omp_get_thread_num() * 64] += compute(omp_get_thread_num() == 1 ? 4000000 : 1000);
	}
}

/* Most of the work is done with a lock. */
static void with_lock(int rounds)
{
#pragma omp parallel for schedule(dynamic)
	for (int i = 0; i < rounds; i++) {
		double value = compute(20000);
#pragma omp critical
		sum += value + compute(200000);
	}
}

/* Tasks of one thread, for all. */
static void many_tasks(int rounds)
{
#pragma omp parallel
#pragma omp single
	for (int i = 0; i < rounds; i++) {
#pragma omp task firstprivate(i)
		cells[i % 64 * 64] += compute(100000);
	}
}

static void read_sums(double *on_cpu, double *delay)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *entry;
	while (tasks && (entry = readdir(tasks))) {
		char path[320], name[64] = "";
		unsigned long long a, b;
		snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
		FILE *file = fopen(path, "r");
		if (file && fgets(name, sizeof name, file) == NULL)
			name[0] = 0;
		if (file)
			fclose(file);
		/* The recorder's own thread is no worker. */
		if (entry->d_name[0] == '.' || strncmp(name, "taskscope", 9) == 0)
			continue;
		snprintf(path, sizeof path, "/proc/self/task/%s/schedstat", entry->d_name);
		file = fopen(path, "r");
		if (file && fscanf(file, "%llu %llu", &a, &b) == 2) {
			*on_cpu += a / 1e6;
			*delay += b / 1e6;
		}
		if (file)
			fclose(file);
	}
	if (tasks)
		closedir(tasks);
}

int main(int argc, char **argv)
{
	double before[2] = { 0 }, after[2] = { 0 };
	read_sums(&before[0], &before[1]);
	const char *what = argc > 1 ? argv[1] : "";
	int rounds = argc > 2 ? atoi(argv[2]) : 1;
	if (!strcmp(what, "short-regions"))
		short_regions(rounds);
	if (!strcmp(what, "one-works"))
		one_works(rounds);
	if (!strcmp(what, "with-lock"))
		with_lock(rounds);
	if (!strcmp(what, "many-tasks"))
		many_tasks(rounds);
	read_sums(&after[0], &after[1]);
	printf("%.3f %.3f\n", after[0] - before[0], after[1] - before[1]);
	return sum + cells[0] < 0;
}
