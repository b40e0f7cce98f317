// Every function of taskscope.h for instrumented runtimes, from C++; mistakes too.
#include <taskscope.h>
#include <thread>

int
main()
{
	taskscope_start(nullptr);
	TASKSCOPE_NAMED(size, taskscope_key("size", "of a block", TASKSCOPE_USER));
	TASKSCOPE_NAMED(off, taskscope_key("off", "is off", TASKSCOPE_DISABLED));
	TASKSCOPE_NAMED(solving, taskscope_state("solving", "", TASKSCOPE_USEFUL));
	TASKSCOPE_NAMED(kind, taskscope_task_kind("block", __FILE__, __LINE__));
	TASKSCOPE_NAMED(mail, taskscope_domain("mail", ""));
	uint64_t large = taskscope_key_value(size, "large", "more than a page");
	taskscope_name_value(size, 1000, "huge", "");
	uint64_t one = taskscope_context_create(kind), two = taskscope_context_create(kind);
	taskscope_context_enter(one);
	{
		TASKSCOPE_IN_STATE_AND_BURST(solving, size, large);
		TASKSCOPE_IN_BURST(off, 1);
		TASKSCOPE_IN_STATE(solving);
		taskscope_states_hide();
		taskscope_state_push(solving);
		taskscope_state_pop(solving);
		taskscope_states_show();
		taskscope_pair pairs[] = {{size, 1}, {off, 2}, {size, 3}};
		taskscope_composite(pairs, 3);
		taskscope_composite(pairs, 1);
		taskscope_key_point(size, 1000);
		taskscope_key_point(off, 7);
	}
	taskscope_burst_open(size, 5);
	taskscope_send(mail, 1, size, 8, TASKSCOPE_NO_PARTNER);
	taskscope_point_later(two, size, 9);
	taskscope_send_later(two, mail, 2, 0, 0, TASKSCOPE_NO_PARTNER);
	taskscope_receive_later(two, mail, 1, size, 8, TASKSCOPE_NO_PARTNER);
	taskscope_context_switch(one, two);
	taskscope_context_leave(two);
	taskscope_receive(mail, 2, 0, 0, 1);
	std::thread([=] {
		taskscope_context_ready(one);
		taskscope_context_enter(one);
		taskscope_burst_close(size, 5);
		taskscope_context_yield(one);
		taskscope_context_enter(one);
		taskscope_context_end(one);
	}).join();
	taskscope_context_end(two);
	// Mistakes.
	taskscope_burst_close(size, 77);
	taskscope_key_point(4711, 1);
	if (taskscope_find_key("nobody's") != 0)
		return 1;
	taskscope_key("size", "something else", TASKSCOPE_USER);
	taskscope_key(nullptr, "\xff\xfe", TASKSCOPE_USER);
	taskscope_finish();
	taskscope_key_point(size, 1);
	return 0;
}
