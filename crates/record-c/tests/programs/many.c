/* More events than a small limit allows: four MiB. */
#include "ovni_abi.h"

int
main(void)
{
	ovni_proc_init(1, "node.0", getpid());
	ovni_thread_init((pid_t) syscall(SYS_gettid));
	ovni_add_cpu(0, 0);
	emit_execute(0, -1);
	for (int i = 0; i < 350000; i++)
		emit_at(ovni_clock_now(), "OB.");
	emit_at(ovni_clock_now(), "OHe");
	ovni_thread_free();
	ovni_proc_fini();
	return 0;
}
