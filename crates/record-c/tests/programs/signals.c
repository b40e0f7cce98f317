/* A signal handler that emits events, whatever it interrupts: emission and clock in turns, emission alone, the clock
 * alone. Prints how many events the thread and the handler have emitted. */
#include "ovni_abi.h"
#include <pthread.h>
#include <signal.h>

enum { EACH_PHASE = 4000 };

static volatile uint64_t handled;
static volatile int over;
/* Turns of the thread's loops: one signal for each at most, since little room is kept for what handlers emit meanwhile. */
static volatile uint64_t turns;
/* What is emitted with, if not zero, in place of the clock. */
static volatile uint64_t instead;
static pthread_t target;

static void
emit_number(uint64_t clock, uint64_t number)
{
	struct ovni_ev ev = {0};
	ovni_ev_set_clock(&ev, clock);
	ovni_ev_set_mcv(&ev, "OB.");
	ovni_payload_add(&ev, (const uint8_t *) &number, sizeof(number));
	ovni_ev_emit(&ev);
}

static void
handler(int signal)
{
	(void) signal;
	emit_number(instead ? instead : ovni_clock_now(), UINT64_C(1) << 63 | handled);
	handled++;
}

static void *
disturb(void *arg)
{
	(void) arg;
	while (!over) {
		uint64_t before = handled, turn = turns;
		pthread_kill(target, SIGUSR1);
		while ((handled == before || turns == turn) && !over)
			;
	}
	return NULL;
}

int
main(void)
{
	ovni_proc_init(1, "node.0", getpid());
	ovni_thread_init(1);
	emit_execute(-1, -1);
	struct sigaction action = {.sa_handler = handler};
	sigaction(SIGUSR1, &action, NULL);
	target = pthread_self();
	pthread_t other;
	pthread_create(&other, NULL, disturb, NULL);
	uint64_t emitted = 0;
	for (; handled < EACH_PHASE; turns++)
		emit_number(ovni_clock_now(), emitted++);
	instead = ovni_clock_now();
	for (; handled < 2 * EACH_PHASE; turns++)
		emit_number(instead, emitted++);
	instead = 0;
	for (; handled < 3 * EACH_PHASE; turns++)
		ovni_clock_now();
	over = 1;
	pthread_join(other, NULL);
	signal(SIGUSR1, SIG_IGN);
	emit_at(ovni_clock_now(), "OHe");
	printf("%llu %llu\n", (unsigned long long) emitted, (unsigned long long) handled);
	ovni_thread_free();
	ovni_proc_fini();
	return 0;
}
