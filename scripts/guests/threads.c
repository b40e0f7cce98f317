/* Waits in every way that a recorder of waits may break: threads WAY. Prints what does not depend on time. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 200 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, other_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_barrier_t barrier;
static pthread_key_t key;
static sem_t items, handled;
static int ends[2], counter, initialised, ended;
static long sum, in_handler;

static void initialise(void)
{
	initialised++;
}

/* Each kind of wait, with and without others. */
static void *work(void *argument)
{
	long own = (long)argument;
	for (int round = 0; round < ROUNDS; round++) {
		pthread_once(&once, initialise);
		pthread_mutex_lock(&mutex);
		sum += own;
		pthread_cond_broadcast(&changed);
		pthread_mutex_unlock(&mutex);
		if (round % 2)
			pthread_rwlock_wrlock(&table);
		else
			pthread_rwlock_rdlock(&table);
		pthread_rwlock_unlock(&table);
		sem_post(&items);
		while (sem_wait(&items) && errno == EINTR)
			;
		uint64_t one = 1;
		if (write(counter, &one, sizeof one) != sizeof one || write(ends[1], "x", 1) != 1)
			abort();
		char byte;
		while (read(ends[0], &byte, 1) != 1)
			if (errno != EINTR)
				abort();
	}
	pthread_barrier_wait(&barrier);
	return argument;
}

static void run_all(void)
{
	pthread_t threads[THREADS];
	long results = 0;
	for (long i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, work, (void *)(i + 1)))
			abort();
	for (int i = 0; i < THREADS; i++) {
		void *result;
		if (pthread_join(threads[i], &result))
			abort();
		results += (long)result;
	}
	uint64_t count;
	if (read(counter, &count, sizeof count) != sizeof count)
		abort();
	printf("sum %ld results %ld count %d initialised %d\n", sum, results, (int)count, initialised);
	fflush(stdout);
}

/* A handler that locks what the interrupted code never holds. */
static void handle(int number)
{
	int kept = errno;
	(void)number;
	if (!pthread_mutex_trylock(&other_mutex)) {
		in_handler++;
		pthread_mutex_unlock(&other_mutex);
	}
	sem_post(&handled);
	errno = kept;
}

static void with_signals(int flags)
{
	struct sigaction action = {.sa_handler = handle, .sa_flags = flags};
	struct itimerval often = {{0, 300}, {0, 300}}, never = {{0, 0}, {0, 0}};
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	run_all();
	setitimer(ITIMER_REAL, &never, NULL);
	while (sem_wait(&handled) && errno == EINTR)
		;
	printf("handled %d\n", in_handler > 0);
}

static void status_of(const char *what, pid_t child)
{
	int status = 0;
	pid_t found;
	while ((found = waitpid(child, &status, 0)) < 0 && errno == EINTR)
		;
	printf("%s %d %d\n", what, found == child, status);
}

static void *wait_in(void *argument)
{
	char bytes[8];
	struct pollfd list = {ends[0], POLLIN, 0};
	int way = (int)(intptr_t)argument;
	switch (way) {
	case 0:
		pthread_mutex_lock(&mutex);
		pthread_cleanup_push((void (*)(void *))pthread_mutex_unlock, &mutex);
		for (;;)
			pthread_cond_wait(&changed, &mutex);
		pthread_cleanup_pop(1);
		break;
	case 1: sem_wait(&items); break;
	case 2: read(ends[0], bytes, 1); break;
	case 3: poll(&list, 1, -1); break;
	case 4: pause(); break;
	case 5: sleep(1000); break;
	case 6: read(counter, bytes, 8); break;
	case 7: {
		struct timespec until = {4102444800, 0};
		sem_timedwait(&items, &until);
		break;
	}
	case 8: waitpid(-1, NULL, 0); for (;;) pause(); break;
	default: for (;;) pause();
	}
	return NULL;
}

static void cancel_each(void)
{
	for (intptr_t way = 0; way < 9; way++) {
		pthread_t thread;
		void *result;
		pthread_create(&thread, NULL, wait_in, (void *)way);
		usleep(way % 3 * 500);
		pthread_cancel(thread);
		pthread_join(thread, &result);
		printf("%d cancelled %d\n", (int)way, result == PTHREAD_CANCELED);
		pthread_mutex_lock(&mutex);
		pthread_mutex_unlock(&mutex);
	}
}

/* Destructors of a thread's data that lock, signal and post, in each round of destructors. */
static void at_end(void *value)
{
	pthread_mutex_lock(&mutex);
	ended++;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&mutex);
	sem_post(&items);
	if ((intptr_t)value > 1)
		pthread_setspecific(key, (void *)((intptr_t)value - 1));
}

static void *with_data(void *argument)
{
	pthread_setspecific(key, (void *)(intptr_t)3);
	return argument;
}

static void end_threads(void)
{
	pthread_t threads[THREADS];
	pthread_key_create(&key, at_end);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, with_data, NULL);
	pthread_mutex_lock(&mutex);
	while (ended < 3 * THREADS)
		pthread_cond_wait(&changed, &mutex);
	pthread_mutex_unlock(&mutex);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	printf("ended %d\n", ended);
}

/* The error of a call that fails; 0 if it does not. */
static int with_errno(int result)
{
	return result < 0 ? errno : 0;
}

int main(int count, char **arguments)
{
	const char *way = count > 1 ? arguments[1] : "plain";
	sem_init(&items, 0, 0);
	sem_init(&handled, 0, 0);
	pthread_barrier_init(&barrier, NULL, THREADS);
	counter = eventfd(0, 0);
	if (counter < 0 || pipe(ends))
		return 1;
	if (!strcmp(way, "signals")) {
		with_signals(SA_RESTART);
	} else if (!strcmp(way, "interrupts")) {
		with_signals(0);
	} else if (!strcmp(way, "fork")) {
		run_all();
		for (int i = 0; i < 5; i++) {
			pid_t child = fork();
			if (!child) {
				uint64_t one = 1;
				pthread_mutex_lock(&mutex);
				pthread_mutex_unlock(&mutex);
				if (write(counter, &one, 8) != 8 || read(counter, &one, 8) != 8)
					_exit(1);
				_exit(3);
			}
			status_of("child", child);
		}
	} else if (!strcmp(way, "vfork")) {
		for (int i = 0; i < 5; i++) {
			pid_t child = vfork();
			if (!child) {
				dup2(ends[1], 1);
				close(ends[0]);
				execlp("echo", "echo", "from a child", NULL);
				_exit(127);
			}
			char text[32] = "";
			ssize_t bytes = read(ends[0], text, sizeof text - 1);
			printf("%d %s", (int)bytes, text);
			status_of("child", child);
		}
		run_all();
	} else if (!strcmp(way, "exec")) {
		run_all();
		char *rest[] = {arguments[0], "plain", NULL};
		execv("/proc/self/exe", rest);
		return 1;
	} else if (!strcmp(way, "dlopen")) {
		for (int i = 0; i < 20; i++) {
			void *library = dlopen("libm.so.6", RTLD_NOW);
			int (*lock)(pthread_mutex_t *) = (int (*)(pthread_mutex_t *))dlsym(RTLD_DEFAULT, "pthread_mutex_lock");
			int (*unlock)(pthread_mutex_t *) = (int (*)(pthread_mutex_t *))dlsym(RTLD_DEFAULT, "pthread_mutex_unlock");
			if (!library || !lock || !unlock || lock(&mutex) || unlock(&mutex))
				return 1;
			dlclose(library);
		}
		run_all();
	} else if (!strcmp(way, "cancel")) {
		cancel_each();
	} else if (!strcmp(way, "ends")) {
		end_threads();
	} else if (!strcmp(way, "errors")) {
		pthread_mutex_t checked;
		pthread_mutexattr_t kind;
		pthread_mutexattr_init(&kind);
		pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ERRORCHECK);
		pthread_mutex_init(&checked, &kind);
		struct timespec past = {0, 0};
		printf("%d", pthread_mutex_unlock(&checked));
		printf(" %d", pthread_mutex_lock(&checked));
		printf(" %d", pthread_mutex_lock(&checked));
		printf(" %d", pthread_mutex_trylock(&checked));
		printf(" %d", pthread_mutex_timedlock(&checked, &past));
		printf(" %d", pthread_cond_timedwait(&changed, &checked, &past));
		printf(" %d", pthread_mutex_destroy(&checked));
		printf(" %d", pthread_mutex_unlock(&checked));
		int results[] = {
			with_errno(sem_trywait(&items)), with_errno(sem_timedwait(&items, &past)),
			with_errno((int)read(-1, NULL, 1)), with_errno(close(-1)),
			with_errno(waitpid(-1, NULL, 0)), with_errno(dup2(-1, 5)),
		};
		for (size_t i = 0; i < sizeof results / sizeof *results; i++)
			printf(" %d", results[i]);
		errno = 7;
		close(dup(ends[0]));
		printf(" %d\n", errno);
	} else {
		run_all();
	}
	return 0;
}
