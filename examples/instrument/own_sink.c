/* A sink of the program's own, in C: the plugin of the Nanos++ articles, which wants to see all bursts of a
 * task begin again when the task is taken up. It prints what each thread shows, while the program runs.
 *
 *	cc own_sink.c -o own_sink $(pkg-config --cflags --libs taskscope)
 *	./own_sink                                        # no trace: TASKSCOPE_TRACE_DIR=own.trace writes one, too
 */
#include <inttypes.h>
#include <stdio.h>
#include <taskscope.h>

static const char *
name(uint32_t space, uint32_t number, char *buffer, size_t bytes)
{
	taskscope_name(space, number, 0, buffer, bytes);
	return buffer;
}

static void
print(void *user, const struct taskscope_shown *shown)
{
	unsigned *lines = user;
	char buffer[64];
	switch (shown->what) {
	case TASKSCOPE_STATE_BEGINS:
	case TASKSCOPE_STATE_ENDS:
		printf("state %s %s\n", name(TASKSCOPE_A_STATE, shown->number, buffer, sizeof buffer),
			shown->what == TASKSCOPE_STATE_BEGINS ? "begins" : "ends");
		break;
	case TASKSCOPE_BURST_BEGINS:
	case TASKSCOPE_BURST_ENDS:
		printf("burst %s = %" PRIu64 " %s\n", name(TASKSCOPE_A_KEY, shown->key, buffer, sizeof buffer),
			shown->value, shown->what == TASKSCOPE_BURST_BEGINS ? "begins" : "ends");
		break;
	case TASKSCOPE_COMPOSITE_PASSED:
		printf("%" PRIu32 " pairs, the last %" PRIu64 "\n", shown->pair_count,
			shown->pairs[shown->pair_count - 1].value);
		break;
	case TASKSCOPE_MESSAGE_SENT:
	case TASKSCOPE_MESSAGE_RECEIVED:
		printf("message %" PRIu64 " of %s %s\n", shown->id,
			name(TASKSCOPE_A_DOMAIN, shown->number, buffer, sizeof buffer),
			shown->what == TASKSCOPE_MESSAGE_SENT ? "goes" : "comes");
		break;
	default:
		break;
	}
	(*lines)++;
}

static void
finish(void *user)
{
	printf("%u in all\n", *(unsigned *) user);
}

static void
work(uint64_t one, uint64_t two)
{
	TASKSCOPE_NAMED(size, taskscope_key_of("block-size", "of what is allocated", TASKSCOPE_USER, "bytes", 1));
	TASKSCOPE_NAMED(cache, taskscope_state("CACHE", "", TASKSCOPE_RUNTIME));
	taskscope_context_enter(one);
	taskscope_burst_open(size, 1);
	{
		TASKSCOPE_IN_STATE_AND_BURST(cache, size, 2);
		taskscope_context_switch(one, two);
		const struct taskscope_pair pairs[] = {{size, 7}, {size, 8}};
		taskscope_composite(pairs, 2);
		taskscope_context_switch(two, one);
	}
	taskscope_burst_close(size, 1);
	taskscope_context_leave(one);
}

int
main(void)
{
	static unsigned lines;
	const struct taskscope_sink sink = {
		.size = sizeof sink, .behaviour = TASKSCOPE_STACKED_BURSTS, .event = print, .finish = finish, .user = &lines};
	if (taskscope_add_sink(&sink) != 0)
		return 1;
	taskscope_start(NULL);
	TASKSCOPE_NAMED(kind, taskscope_task_kind("block", __FILE__, __LINE__));
	uint64_t one = taskscope_context_create(kind), two = taskscope_context_create(kind);
	work(one, two);
	/* What it says of block-size and of the tasks' own ways is of no interest now. */
	taskscope_set_enabled("block-size", 0);
	work(one, two);
	taskscope_set_enabled("block-size", 1);
	taskscope_set_enabled("state.", 0);
	work(one, two);
	taskscope_context_end(one);
	taskscope_context_end(two);
	taskscope_finish();
	return 0;
}
