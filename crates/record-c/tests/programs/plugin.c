/* A library that is linked to libovni and arrives by dlopen, as Nanos6's variants do. */
#include "ovni_abi.h"

void
plugin_start(void)
{
	ovni_proc_init(1, "node.0", getpid());
}

void
plugin_thread(void)
{
	ovni_thread_init((pid_t) syscall(SYS_gettid));
	emit_execute(0, -1);
	emit_at(ovni_clock_now(), "OHe");
	ovni_thread_free();
}
