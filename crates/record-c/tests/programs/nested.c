/* Tasks with nested sections, far more than a small disk holds. */
#include "ovni_abi.h"

static void
task(const char *code, uint32_t id)
{
	struct ovni_ev ev = {0};
	uint32_t body = 1;
	ovni_ev_set_clock(&ev, ovni_clock_now());
	ovni_ev_set_mcv(&ev, code);
	ovni_payload_add(&ev, (uint8_t *) &id, 4);
	ovni_payload_add(&ev, (uint8_t *) &body, 4);
	ovni_ev_emit(&ev);
}

int
main(void)
{
	ovni_proc_init(1, "node.0", getpid());
	ovni_thread_init((pid_t) syscall(SYS_gettid));
	ovni_thread_require("nosv", "2.7.0");
	ovni_add_cpu(0, 0);
	emit_execute(0, -1);
	emit_at(ovni_clock_now(), "VHw");
	for (uint32_t i = 1; i < 20000; i++) {
		ovni_mark_push(7, i);
		task("VTx", i);
		emit_at(ovni_clock_now(), "VAs");
		for (uint32_t inner = 0; inner < i % 7; inner++) {
			emit_at(ovni_clock_now(), "VU[");
			emit_at(ovni_clock_now(), "VMa");
			emit_at(ovni_clock_now(), "VSr");
			emit_at(ovni_clock_now(), "VMA");
			emit_at(ovni_clock_now(), "VU]");
		}
		emit_at(ovni_clock_now(), "VAS");
		task("VTe", i);
		ovni_mark_pop(7, i);
	}
	emit_at(ovni_clock_now(), "VHW");
	emit_at(ovni_clock_now(), "OHe");
	ovni_thread_free();
	ovni_proc_fini();
	puts("done");
	return 0;
}
