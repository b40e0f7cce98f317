/* What a compiler is asked to be strict about, in C99 and in C++11. */
#include <taskscope.h>

static int
allocate(uint64_t bytes)
{
	TASKSCOPE_NAMED(cache, taskscope_state("CACHE", "", TASKSCOPE_RUNTIME));
	TASKSCOPE_NAMED(size, taskscope_key("cache-malloc", "allocation", TASKSCOPE_USER));
	TASKSCOPE_IN_STATE_AND_BURST(cache, size, bytes);
	TASKSCOPE_IN_STATE(cache);
	TASKSCOPE_IN_BURST(size, bytes);
	if (bytes > 4096)
		return 1;
	taskscope_key_point(size, bytes);
	return 0;
}

int
main(void)
{
	taskscope_start(NULL);
	struct taskscope_open open = taskscope_begin(taskscope_span("sweep"));
	TASKSCOPE_NAMED(block, taskscope_task_kind("block", __FILE__, __LINE__));
	uint64_t task = taskscope_context_create(block);
	taskscope_context_switch(0, task);
	int large = allocate(taskscope_find_key("cache-malloc") + 4096);
	taskscope_context_end(task);
	taskscope_set(taskscope_value("large"), large);
	taskscope_event("OB.", "", 0);
	taskscope_end(open);
	taskscope_finish();
	return 0;
}
