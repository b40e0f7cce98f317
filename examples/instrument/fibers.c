/* A small runtime with user-level tasks: fibers (ucontext) that any of its threads may run, and that go on
 * on another thread after they have waited. It is instrumented as the Nanos++ articles show:
 *
 *  - what runtime code does is bounded by a state and a burst together (allocate: state CACHE, and a burst
 *    whose value is the number of bytes);
 *  - a switch of tasks is one event with the old and the new task (run_fibers, wait_a_turn).
 *
 *	cc -D_GNU_SOURCE fibers.c -o fibers $(pkg-config --cflags --libs taskscope) -pthread
 *	./fibers fibers.trace && taskscope report fibers.trace
 *	taskscope dump --shown task fibers.trace
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <taskscope.h>
#include <ucontext.h>

enum { THREADS = 3, FIBERS = 12, TURNS = 6, STACK_BYTES = 64 * 1024 };

struct fiber {
	ucontext_t context;
	uint64_t task; /* its number in the trace */
	int number;
	int over;
	struct fiber *next;
	char *stack;
};

/* The queue of fibers that can run. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t filled;
	struct fiber *first, **last;
	int left;
} ready = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL, &ready.first, FIBERS};

/* Where each thread goes when its fiber stops, and which fiber that is. A fiber may wake up on another
 * thread, so these are read through functions that the compiler does not inline. */
static __thread ucontext_t scheduler;
static __thread struct fiber *running;

static __attribute__((noinline)) ucontext_t *here(void) { __asm__ volatile(""); return &scheduler; }
static __attribute__((noinline)) struct fiber *self(void) { __asm__ volatile(""); return running; }

static void
make_ready(struct fiber *fiber)
{
	pthread_mutex_lock(&ready.lock);
	fiber->next = NULL;
	*ready.last = fiber;
	ready.last = &fiber->next;
	pthread_cond_signal(&ready.filled);
	pthread_mutex_unlock(&ready.lock);
}

/* The next fiber that can run; NULL when all have ended. */
static struct fiber *
next_fiber(void)
{
	TASKSCOPE_NAMED(idle, taskscope_state("IDLE", "", TASKSCOPE_IDLE));
	TASKSCOPE_IN_STATE(idle);
	pthread_mutex_lock(&ready.lock);
	while (ready.first == NULL && ready.left > 0)
		pthread_cond_wait(&ready.filled, &ready.lock);
	struct fiber *fiber = ready.first;
	if (fiber != NULL) {
		ready.first = fiber->next;
		if (ready.first == NULL)
			ready.last = &ready.first;
	}
	pthread_mutex_unlock(&ready.lock);
	return fiber;
}

/* The article's first example: memory of a device's cache, of which both the state and the size are told. */
static void *
allocate(size_t bytes)
{
	TASKSCOPE_NAMED(cache, taskscope_state("CACHE", "", TASKSCOPE_RUNTIME));
	TASKSCOPE_NAMED(size, taskscope_key("cache-malloc", "Memory allocation in device cache", TASKSCOPE_USER));
	TASKSCOPE_IN_STATE_AND_BURST(cache, size, bytes);
	return calloc(1, bytes);
}

/* The fiber waits for its next turn: it goes to the end of the queue, and on on any thread. */
static void
wait_a_turn(void)
{
	struct fiber *fiber = self();
	swapcontext(&fiber->context, here());
}

static void
work(int number)
{
	TASKSCOPE_NAMED(running_state, taskscope_state("RUNNING", "", TASKSCOPE_USEFUL));
	TASKSCOPE_NAMED(turn, taskscope_key("turn", "of a fiber", TASKSCOPE_DEVELOPER));
	TASKSCOPE_NAMED(mail, taskscope_domain("mail", "from a fiber to the next"));
	/* Open during all turns: they move with the fiber. */
	taskscope_state_push(running_state);
	for (int i = 0; i < TURNS; i++) {
		taskscope_burst_open(turn, (uint64_t) i + 1);
		volatile double *data = allocate(8192);
		/* One fiber works much longer than the others. */
		for (int n = 0; n < (number == 3 ? 4000000 : 200000); n++)
			data[n % 1024] += n;
		free((void *) data);
		taskscope_send(mail, (uint64_t) (number * TURNS + i), 0, 0, TASKSCOPE_NO_PARTNER);
		wait_a_turn();
		taskscope_receive(mail, (uint64_t) (number * TURNS + i), 0, 0, TASKSCOPE_NO_PARTNER);
		taskscope_burst_close(turn, (uint64_t) i + 1);
	}
	taskscope_state_pop(running_state);
}

static void
start_fiber(void)
{
	work(self()->number);
	self()->over = 1;
	setcontext(here());
}

/* A thread runs fibers, one after the other. The article's second example: the switch. */
static void *
run_fibers(void *unused)
{
	(void) unused;
	TASKSCOPE_NAMED(scheduling, taskscope_state("SCHEDULING", "", TASKSCOPE_SCHEDULING));
	taskscope_state_push(scheduling);
	struct fiber *old = NULL;
	for (;;) {
		struct fiber *fiber = next_fiber();
		if (fiber == NULL)
			break;
		taskscope_context_switch(0, fiber->task);
		running = fiber;
		swapcontext(&scheduler, &fiber->context);
		old = running;
		running = NULL;
		if (old->over) {
			taskscope_context_end(old->task);
			free(old->stack);
			pthread_mutex_lock(&ready.lock);
			ready.left--;
			if (ready.left == 0)
				pthread_cond_broadcast(&ready.filled);
			pthread_mutex_unlock(&ready.lock);
		} else {
			/* Before another thread can take it up. */
			taskscope_context_yield(old->task);
			make_ready(old);
		}
	}
	taskscope_state_pop(scheduling);
	return NULL;
}

int
main(int count, char **arguments)
{
	taskscope_start(count > 1 ? arguments[1] : NULL);
	static struct fiber fibers[FIBERS];
	TASKSCOPE_NAMED(kind, taskscope_task_kind("fiber", __FILE__, __LINE__));
	for (int i = 0; i < FIBERS; i++) {
		fibers[i].number = i;
		fibers[i].task = taskscope_context_create(kind);
		fibers[i].stack = malloc(STACK_BYTES);
		getcontext(&fibers[i].context);
		fibers[i].context.uc_stack.ss_sp = fibers[i].stack;
		fibers[i].context.uc_stack.ss_size = STACK_BYTES;
		makecontext(&fibers[i].context, start_fiber, 0);
		make_ready(&fibers[i]);
	}
	pthread_t threads[THREADS];
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, run_fibers, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	taskscope_finish();
	puts("all fibers have ended");
	return 0;
}
