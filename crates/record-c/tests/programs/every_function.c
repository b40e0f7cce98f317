/* Calls each of the 35 functions as programs do, on the main thread. */
#include "ovni_abi.h"
#include <time.h>

int
main(void)
{
	const char *version = NULL, *commit = NULL;
	ovni_version_get(&version, &commit);
	CHECK(strcmp(version, "1.14.0") == 0 && commit[0] != '\0');
	ovni_version_check_str("1.0.9");
	ovni_version_check_str("1.14.7");

	CHECK(ovni_thread_isready() == 0);
	ovni_proc_init(3, "node7.test", 4242);
	CHECK(ovni_thread_isready() == 0);
	ovni_thread_init(77);
	CHECK(ovni_thread_isready() == 1);
	ovni_thread_require("nosv", "1.0.0");
	ovni_thread_require("nosv", "2.7.0");
	ovni_thread_require("kernel", "1.0.0");
	ovni_proc_set_rank(1, 2);
	ovni_add_cpu(0, 4);
	ovni_add_cpu(1, 6);

	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	uint64_t kernel = (uint64_t) now.tv_sec * 1000000000u + (uint64_t) now.tv_nsec, ours = ovni_clock_now();
	CHECK(ours + 1000 > kernel && ours < kernel + 1000000);

	emit_execute(0, -1);

	struct ovni_ev ev = {0};
	CHECK(ovni_ev_size(&ev) == 12 && ovni_payload_size(&ev) == 0);
	uint64_t base = ovni_clock_now();
	ovni_ev_set_clock(&ev, base);
	CHECK(ovni_ev_get_clock(&ev) == base);
	ovni_ev_set_mcv(&ev, "VTc");
	uint32_t task = 1, type = 9;
	ovni_payload_add(&ev, (uint8_t *) &task, sizeof(task));
	ovni_payload_add(&ev, (uint8_t *) &type, sizeof(type));
	CHECK(ovni_ev_size(&ev) == 20 && ovni_payload_size(&ev) == 8 && ev.header.flags == 7);

	/* The type first: a jumbo event. */
	struct ovni_ev jumbo = {0};
	char label[4 + 12];
	memcpy(label, &type, 4);
	memcpy(label + 4, "a task type", 12);
	ovni_ev_set_clock(&jumbo, base);
	ovni_ev_set_mcv(&jumbo, "VYc");
	ovni_ev_jumbo_emit(&jumbo, (uint8_t *) label, sizeof(label));
	CHECK(jumbo.header.flags == (OVNI_EV_JUMBO | 3) && ovni_payload_size(&jumbo) == 20 && ovni_ev_size(&jumbo) == 32);
	ovni_ev_emit(&ev);

	/* Every size of a payload; VTx of 8 bytes is the only one that means something. */
	for (int size = 2; size <= 16; size++) {
		uint8_t bytes[16];
		for (int i = 0; i < 16; i++)
			bytes[i] = (uint8_t) (size * 16 + i);
		struct ovni_ev sized = {0};
		ovni_ev_set_clock(&sized, base + (uint64_t) size);
		ovni_ev_set_mcv(&sized, "OB.");
		ovni_payload_add(&sized, bytes, size);
		CHECK(ovni_payload_size(&sized) == size);
		ovni_ev_emit(&sized);
	}

	/* Clocks may go back between OU[ and OU], and the order of emission is kept. */
	emit_at(base + 100, "OU[");
	emit_at(base + 50, "KCO");
	emit_at(base + 60, "KCI");
	emit_at(base + 101, "OU]");
	ovni_flush();

	ovni_attr_set_double("test.double", 123.5);
	ovni_attr_set_double("test.whole", 7);
	ovni_attr_set_boolean("test.flag", 1);
	ovni_attr_set_str("test.deep.text", "f\"oo");
	ovni_attr_set_json("nosv.test.json", "{\"foo\": [42, null]}");
	CHECK(ovni_attr_has("test.double") == 1 && ovni_attr_has("test") == 1 && ovni_attr_has("none") == 0);
	CHECK(ovni_attr_get_double("test.double") == 123.5 && ovni_attr_get_double("test.whole") == 7.0);
	CHECK(ovni_attr_get_boolean("test.flag") == 1);
	const char *text = ovni_attr_get_str("test.deep.text");
	CHECK(strcmp(text, "f\"oo") == 0);
	char *json = ovni_attr_get_json("nosv.test");
	CHECK(strcmp(json, "{\"json\":{\"foo\":[42,null]}}") == 0);
	free(json);
	ovni_attr_flush();

	ovni_mark_type(5, OVNI_MARK_STACK, "Stacked");
	ovni_mark_type(6, 0, "Single");
	ovni_mark_label(5, 1, "one");
	CHECK(ovni_attr_has("ovni.mark.5.labels.1") == 1);
	ovni_mark_push(5, 1);
	ovni_mark_set(6, -8);
	ovni_mark_pop(5, 1);

	emit_at(ovni_clock_now(), "OHe");
	ovni_thread_free();
	CHECK(ovni_thread_isready() == 0);
	ovni_proc_fini();
	return 0;
}
