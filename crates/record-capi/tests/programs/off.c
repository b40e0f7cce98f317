/* Everything that taskscope.h has, in one function each. Compiled with TASKSCOPE_OFF, nothing may be left of it;
 * without, it must compile too. As C and as C++. */
#include "taskscope.h"

#if defined(PROGRAM)
#include <stdio.h>
#endif

static inline void
hear(void *user, const struct taskscope_shown *shown)
{
	(void) user;
	(void) shown;
}

/* No argument has a side effect: with TASKSCOPE_OFF this is `return 0`. */
int
instrumented(void)
{
	const uint32_t words[4] = {1, 2, 3, 4};
	int failed = taskscope_start("canary of start");
	uint32_t span = taskscope_span("canary of span"), value = taskscope_value("canary of value");
	uint32_t type = taskscope_task_type("canary of type");
	struct taskscope_open open = taskscope_begin(span), running;
	uint32_t task = taskscope_task_create(type);
	running = taskscope_task_begin(task);
	taskscope_set(value, 7);
	taskscope_point();
	taskscope_end(running);
	taskscope_end(open);
	taskscope_name_data(words, sizeof(words), "canary of data");
	taskscope_switch(0);
	taskscope_event("OB.", words, 16);
	taskscope_data("OB.", "canary of any event", 20);

	TASKSCOPE_NAMED(key, taskscope_key("canary of key", "canary described", TASKSCOPE_USER));
	TASKSCOPE_NAMED(state, taskscope_state("canary of state", "", TASKSCOPE_RUNTIME));
	TASKSCOPE_NAMED(found, taskscope_find_key("canary of another"));
	uint32_t size = taskscope_key_of("canary of size", "", TASKSCOPE_DEVELOPER, "canaries", 1);
	uint64_t named = taskscope_key_value(key, "canary of a value", "");
	uint32_t domain = taskscope_domain("canary of domain", "");
	uint32_t kind = taskscope_task_kind("canary of kind", "canary.c", 1);
	struct taskscope_pair pairs[2];
	pairs[0].key = key, pairs[0].value = named;
	pairs[1].key = size, pairs[1].value = taskscope_find_key("canary of a third");
	taskscope_name_value(key, 3, "canary of three", "");
	taskscope_set_enabled("canary", 1);
	{
		TASKSCOPE_IN_STATE_AND_BURST(state, key, 3);
		TASKSCOPE_IN_STATE(state);
		TASKSCOPE_IN_BURST(found, 3);
		if (taskscope_state_push(state))
			taskscope_state_pop(state);
		taskscope_states_hide();
		taskscope_states_show();
		if (taskscope_burst_open(key, 3))
			taskscope_burst_close(key, 3);
		if (taskscope_state_and_burst_open(state, key, 3))
			taskscope_state_and_burst_close(state, key, 3);
	}
	taskscope_key_point(key, named);
	taskscope_composite(pairs, 2);
	taskscope_send(domain, 1, key, 2, TASKSCOPE_NO_PARTNER);
	taskscope_receive(domain, 1, key, 2, TASKSCOPE_NO_PARTNER);

	uint64_t context = taskscope_context_create(kind);
	taskscope_context_enter(context);
	taskscope_context_leave(context);
	taskscope_context_ready(context);
	taskscope_context_switch(0, context);
	taskscope_context_yield(context);
	taskscope_context_end(context);
	taskscope_point_later(context, key, 1);
	taskscope_send_later(context, domain, 1, key, 2, TASKSCOPE_NO_PARTNER);
	taskscope_receive_later(context, domain, 1, key, 2, TASKSCOPE_NO_PARTNER);

	struct taskscope_sink sink = {sizeof(struct taskscope_sink), TASKSCOPE_STACKED_BURSTS, hear, NULL, NULL};
	failed |= taskscope_add_sink(&sink);
	char name[16];
	failed |= taskscope_name(TASKSCOPE_A_KEY, key, 0, name, sizeof(name)) != 0;
	taskscope_thread_end();
	taskscope_finish();
	return failed | (taskscope_clock() != 0);
}

#ifdef PROGRAM
/* What the program does itself in its arguments it still does, once. */
int
main(void)
{
	uint32_t words[4] = {1, 2, 3, 4};
	int done = 0;
	char name[4] = "abc";
	if (instrumented() != 0)
		return 1;
	taskscope_set((uint32_t) ++done, 1);
	TASKSCOPE_IN_STATE_AND_BURST((uint32_t) ++done, 0, 0);
	taskscope_event("OB.", (done++, words), 16);
	if (taskscope_name(TASKSCOPE_A_KEY, 1, 0, name, sizeof(name)) != 0 || name[0] != 0)
		return 2;
	printf("%d\n", done);
	return 0;
}
#endif
