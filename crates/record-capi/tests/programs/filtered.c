/* Spans, and states of scopes, that are not wanted, around tasks. */
#include "taskscope.h"

int
main(void)
{
	if (taskscope_start(NULL) != 0)
		return 1;
	uint32_t span = taskscope_span("span"), block = taskscope_task_type("block");
	struct taskscope_open outer = taskscope_begin(span);
	struct taskscope_open task = taskscope_task_begin(taskscope_task_create(block));
	taskscope_end(taskscope_begin(span));
	{
		TASKSCOPE_IN_STATE(taskscope_state("CACHE", "", TASKSCOPE_RUNTIME));
		taskscope_end(taskscope_begin(span));
	}
	taskscope_end(task);
	taskscope_end(outer);
	return 0;
}
