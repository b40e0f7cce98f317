/* Everything that the original library answers with abort(). */
#include "ovni_abi.h"

int
main(void)
{
	struct ovni_ev ev = {0};
	uint8_t bytes[16] = {0};
	ovni_version_check_str("2.0.0");
	ovni_version_check_str("1.15.0");
	ovni_version_check_str("one");
	ovni_version_check_str(NULL);
	ovni_proc_fini();
	ovni_thread_init(1);
	ovni_thread_require("nosv", "2.7.0");
	ovni_thread_free();
	ovni_ev_set_mcv(&ev, "OB.");
	ovni_ev_emit(&ev);
	ovni_proc_init(1, "no/loom", 1);
	ovni_proc_init(1, "loom.0", 10);
	ovni_proc_init(1, "loom.0", 10);
	ovni_thread_init(0);
	ovni_thread_init(20);
	ovni_thread_init(20);
	ovni_thread_require("x", "1.0.0");
	ovni_thread_require("nosv", "1.0");
	ovni_add_cpu(-1, 0);
	ovni_payload_add(&ev, bytes, 1);
	ovni_payload_add(&ev, bytes, 17);
	ovni_attr_set_json("a", "{");
	CHECK(ovni_attr_get_double("none") == 0.0);
	CHECK(strcmp(ovni_attr_get_str("none"), "") == 0);
	ovni_mark_type(100, 0, "too large");
	ovni_mark_label(7, 1, "undefined");
	ovni_mark_push(7, 0);
	ev.header.model = 0;
	ovni_ev_emit(&ev);
	/* What is right is still recorded. */
	emit_execute(-1, 20);
	emit_at(ovni_clock_now(), "OHe");
	ovni_thread_free();
	ovni_thread_free();
	ovni_proc_fini();
	ovni_proc_fini();
	puts("the program runs on");
	return 0;
}
