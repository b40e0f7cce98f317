/* A thread that cannot be recorded: there are no descriptors for its files. It calls what a recorded one would. */
#include "ovni_abi.h"
#include <sys/resource.h>

int
main(void)
{
	ovni_proc_init(1, "node.0", getpid());
	struct rlimit none = {3, 3};
	setrlimit(RLIMIT_NOFILE, &none);
	ovni_thread_init((pid_t) syscall(SYS_gettid));
	ovni_thread_require("nosv", "2.0.0");
	ovni_proc_set_rank(0, 1);
	ovni_add_cpu(0, 0);
	emit_execute(0, -1);
	ovni_attr_set_str("user.name", "value");
	ovni_mark_type(1, 0, "phase");
	ovni_mark_set(1, 7);
	ovni_flush();
	emit_at(ovni_clock_now(), "OHe");
	ovni_thread_free();
	ovni_proc_fini();
	puts("done");
	return 0;
}
