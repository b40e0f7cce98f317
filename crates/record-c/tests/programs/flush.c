/* Flushes after the last event of its thread, after each event, and with more events behind the last flush. */
#include "ovni_abi.h"
#include <pthread.h>
#include <stdint.h>

static void
emit(const char *mcv)
{
	struct ovni_ev ev = {0};
	ovni_ev_set_clock(&ev, ovni_clock_now());
	ovni_ev_set_mcv(&ev, mcv);
	ovni_ev_emit(&ev);
}

static void *
thread(void *number)
{
	intptr_t of = (intptr_t) number;
	ovni_thread_init((int) of);
	emit_execute(0, -1);
	if (of == 3) {
		ovni_flush();
		for (int i = 0; i < 3; i++)
			emit("OB.");
	}
	if (of == 2)
		ovni_flush();
	emit("OHe");
	if (of != 3)
		ovni_flush();
	ovni_thread_free();
	return NULL;
}

int
main(void)
{
	ovni_proc_init(1, "node.0", 5);
	for (intptr_t of = 1; of <= 3; of++) {
		pthread_t id;
		if (pthread_create(&id, NULL, thread, (void *) of) != 0 || pthread_join(id, NULL) != 0)
			return 1;
	}
	ovni_proc_fini();
	return 0;
}
