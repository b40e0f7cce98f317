/* A fork in the middle; both processes go on, and the child does not know. */
#include "ovni_abi.h"
#include <sys/wait.h>

int
main(void)
{
	ovni_proc_init(1, "node.0", getpid());
	ovni_thread_init((pid_t) syscall(SYS_gettid));
	ovni_thread_require("nosv", "2.7.0");
	ovni_add_cpu(0, 0);
	emit_execute(0, -1);
	for (int i = 0; i < 100; i++)
		emit_at(ovni_clock_now(), "OB.");
	pid_t child = fork();
	int more = child == 0 ? 10 : 20;
	for (int i = 0; i < more; i++)
		emit_at(ovni_clock_now(), "OB.");
	emit_at(ovni_clock_now(), "OHe");
	ovni_thread_free();
	if (child != 0)
		waitpid(child, NULL, 0);
	ovni_proc_fini();
	return 0;
}
