/* The interface of libovni.so.1, for the test programs: the layouts and prototypes that programs built
 * with ovni's own header use. */
#pragma once
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct __attribute__((packed)) ovni_ev_header {
	uint8_t flags, model, category, value;
	uint64_t clock;
};

union __attribute__((packed)) ovni_ev_payload {
	uint8_t u8[16];
	int32_t i32[4];
	uint64_t u64[2];
	struct __attribute__((packed)) { uint32_t size; uint8_t data[1]; } jumbo;
};

struct __attribute__((packed)) ovni_ev {
	struct ovni_ev_header header;
	union ovni_ev_payload payload;
};

struct __attribute__((packed)) ovni_stream_header {
	char magic[4];
	uint32_t version;
};

_Static_assert(sizeof(struct ovni_ev_header) == 12 && sizeof(struct ovni_ev) == 28, "event");
_Static_assert(sizeof(struct ovni_stream_header) == 8, "stream header");
_Static_assert(offsetof(struct ovni_ev, header.clock) == 4 && offsetof(struct ovni_ev, payload) == 12, "event");

enum { OVNI_EV_JUMBO = 0x10, OVNI_MARK_STACK = 1 };

void ovni_version_check_str(const char *version);
void ovni_version_get(const char **version, const char **commit);
void ovni_proc_init(int app, const char *loom, int pid);
void ovni_proc_set_rank(int rank, int nranks);
void ovni_proc_fini(void);
void ovni_thread_init(pid_t tid);
void ovni_thread_require(const char *model, const char *version);
int ovni_thread_isready(void);
void ovni_thread_free(void);
void ovni_add_cpu(int index, int phyid);
void ovni_ev_set_mcv(struct ovni_ev *ev, const char *mcv);
uint64_t ovni_ev_get_clock(const struct ovni_ev *ev);
void ovni_ev_set_clock(struct ovni_ev *ev, uint64_t clock);
uint64_t ovni_clock_now(void);
void ovni_payload_add(struct ovni_ev *ev, const uint8_t *buf, int size);
int ovni_ev_size(const struct ovni_ev *ev);
int ovni_payload_size(const struct ovni_ev *ev);
void ovni_ev_emit(struct ovni_ev *ev);
void ovni_ev_jumbo_emit(struct ovni_ev *ev, const uint8_t *buf, uint32_t bufsize);
void ovni_flush(void);
int ovni_attr_has(const char *key);
void ovni_attr_set_double(const char *key, double num);
void ovni_attr_set_boolean(const char *key, int value);
void ovni_attr_set_str(const char *key, const char *value);
void ovni_attr_set_json(const char *key, const char *json);
double ovni_attr_get_double(const char *key);
int ovni_attr_get_boolean(const char *key);
const char *ovni_attr_get_str(const char *key);
char *ovni_attr_get_json(const char *key);
void ovni_attr_flush(void);
void ovni_mark_type(int32_t type, long flags, const char *title);
void ovni_mark_label(int32_t type, int64_t value, const char *label);
void ovni_mark_push(int32_t type, int64_t value);
void ovni_mark_pop(int32_t type, int64_t value);
void ovni_mark_set(int32_t type, int64_t value);

/* Fails in release builds too. */
#define CHECK(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition); \
			exit(1); \
		} \
	} while (0)

static inline void
emit_at(uint64_t clock, const char *mcv)
{
	struct ovni_ev ev = {0};
	ovni_ev_set_clock(&ev, clock);
	ovni_ev_set_mcv(&ev, mcv);
	ovni_ev_emit(&ev);
}

/* The thread starts on a CPU, as every runtime says it. */
static inline void
emit_execute(int32_t cpu, int32_t creator)
{
	uint64_t tag = 0;
	struct ovni_ev ev = {0};
	ovni_ev_set_clock(&ev, ovni_clock_now());
	ovni_ev_set_mcv(&ev, "OHx");
	ovni_payload_add(&ev, (uint8_t *) &cpu, sizeof(cpu));
	ovni_payload_add(&ev, (uint8_t *) &creator, sizeof(creator));
	ovni_payload_add(&ev, (uint8_t *) &tag, sizeof(tag));
	ovni_ev_emit(&ev);
}
