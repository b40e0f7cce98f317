/* What an event costs through the interface of libovni: thread CPU nanoseconds an event, clock, letters,
 * payload and emission as the separate calls that runtimes make. Usage: abi_cost [THREADS] [ROUNDS] [TITLE] */
#include "../../tests/programs/ovni_abi.h"
#include <pthread.h>
#include <time.h>

enum { EVENTS = 4000000, KINDS = 5, MAX_ROUNDS = 31 };
static const char *names[KINDS] = {
	"clock alone", "no payload", "4 bytes", "16 bytes (two calls)", "jumbo, 64 bytes",
};
static int rounds = 7, threads = 1;
static double results[KINDS][MAX_ROUNDS * 16];
static pthread_barrier_t together;

static double
cpu_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double) t.tv_sec * 1e9 + (double) t.tv_nsec;
}

static double
measure(int kind)
{
	static const uint8_t data[64] = {1, 2, 3};
	volatile uint64_t sink = 0;
	double begin = cpu_ns();
	for (int i = 0; i < EVENTS; i++) {
		struct ovni_ev ev = {0};
		ovni_ev_set_clock(&ev, ovni_clock_now());
		if (kind == 0) {
			sink = ovni_ev_get_clock(&ev);
			continue;
		}
		ovni_ev_set_mcv(&ev, "OB.");
		if (kind == 2)
			ovni_payload_add(&ev, data, 4);
		if (kind == 3) {
			ovni_payload_add(&ev, data, 8);
			ovni_payload_add(&ev, data, 8);
		}
		if (kind == 4)
			ovni_ev_jumbo_emit(&ev, data, 64);
		else
			ovni_ev_emit(&ev);
	}
	(void) sink;
	return (cpu_ns() - begin) / EVENTS;
}

static void *
run(void *arg)
{
	int me = (int) (intptr_t) arg;
	for (int round = 0; round < rounds; round++) {
		for (int kind = 0; kind < KINDS; kind++) {
			/* A fresh stream each time, so that files stay small. */
			ovni_thread_init((int) (me * 1000 + round * KINDS + kind + 1));
			pthread_barrier_wait(&together);
			results[kind][round * threads + me] = measure(kind);
			char path[512];
			snprintf(path, sizeof(path), "%s/loom.bench.0/proc.1/thread.%d/stream.obs", getenv("OVNI_TRACEDIR"),
				me * 1000 + round * KINDS + kind + 1);
			ovni_thread_free();
			unlink(path);
		}
	}
	return NULL;
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
	if (argc > 1 && atoi(argv[1]) >= 1 && atoi(argv[1]) <= 16)
		threads = atoi(argv[1]);
	if (argc > 2 && atoi(argv[2]) >= 1 && atoi(argv[2]) <= MAX_ROUNDS)
		rounds = atoi(argv[2]);
	const char *title = argc > 3 ? argv[3] : "libovni ABI";
	pthread_t ids[16];
	pthread_barrier_init(&together, NULL, (unsigned) threads);
	ovni_proc_init(1, "bench.0", 1);
	for (int i = 0; i < threads; i++)
		pthread_create(&ids[i], NULL, run, (void *) (intptr_t) i);
	for (int i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
	ovni_proc_fini();
	for (int kind = 0; kind < KINDS; kind++) {
		int n = rounds * threads;
		qsort(results[kind], (size_t) n, sizeof(double), ascending);
		printf("%s, %d thread%s: %-22s %6.1f %6.1f %6.1f\n", title, threads, threads == 1 ? " " : "s", names[kind],
			results[kind][0], results[kind][n / 2], results[kind][n - 1]);
	}
	return 0;
}
