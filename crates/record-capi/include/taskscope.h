/* taskscope.h: spans, tasks, values and points in C and C++ programs.
 *
 *	#include <taskscope.h>                            cc program.c $(pkg-config --cflags --libs taskscope)
 *
 *	taskscope_start("program.trace");
 *	uint32_t sweep = taskscope_span("sweep");         // once
 *	struct taskscope_open open = taskscope_begin(sweep);
 *	...
 *	taskscope_end(open);
 *
 * An event costs two to three nanoseconds more than reading the counter: it is stored inline, without
 * a lock, a system call or a function call. Threads are recorded from their first event to their end.
 * Nothing here ever fails: what cannot be recorded is counted, and the program runs on.
 *
 * Written from crates/record-capi/src/taskscope.h.in: change that file.
 */
#ifndef TASKSCOPE_H
#define TASKSCOPE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#define TASKSCOPE_ASSERT_(condition) static_assert(condition, "taskscope.h: layout")
#else
#define TASKSCOPE_ASSERT_(condition) _Static_assert(condition, "taskscope.h: layout")
#endif

/* --- Process and threads ------------------------------------------------------------------------ */

/* Starts recording into `directory`; if it is NULL, where TASKSCOPE_TRACE_DIR says. 0, or -1. */
int taskscope_start(const char *directory);
/* Ends recording; the program's end does so by itself. */
void taskscope_finish(void);
/* Ends recording on the calling thread; its end does so by itself. */
void taskscope_thread_end(void);
/* Switches recording on (not 0) or off for all threads. Spans and tasks that are open still end. */
void taskscope_switch(int on);
/* Nanoseconds of CLOCK_MONOTONIC. */
uint64_t taskscope_clock(void);

/* --- Names, to be asked for once ---------------------------------------------------------------- */

uint32_t taskscope_span(const char *name);
uint32_t taskscope_value(const char *title);
uint32_t taskscope_task_type(const char *name);

/* --- Inline emission: what follows up to the next line is not for use ----------------------------- */

struct taskscope_recorder_ {
	uint32_t state, busy, pending, gate;
	uintptr_t owner;
	void *user;
	struct {
		uint64_t counter, ns, rate, span, last;
	} clock;
	uint8_t *position, *end, *region_end;
};

TASKSCOPE_ASSERT_(offsetof(struct taskscope_recorder_, state) == 0);
TASKSCOPE_ASSERT_(offsetof(struct taskscope_recorder_, pending) == 8);
TASKSCOPE_ASSERT_(offsetof(struct taskscope_recorder_, gate) == 12);
TASKSCOPE_ASSERT_(offsetof(struct taskscope_recorder_, owner) == 16);
TASKSCOPE_ASSERT_(offsetof(struct taskscope_recorder_, clock) == 32);
TASKSCOPE_ASSERT_(offsetof(struct taskscope_recorder_, position) == 72);
TASKSCOPE_ASSERT_(offsetof(struct taskscope_recorder_, end) == 80);
TASKSCOPE_ASSERT_(offsetof(struct taskscope_recorder_, region_end) == 88);

struct taskscope_recorder_ *taskscope_emit_(uint32_t head, const void *payload, uint32_t bytes, uint32_t kind);
void taskscope_settle_(void);
uint32_t taskscope_task_number(void);

/* This file's copy of the thread's recorder. A recorder of another thread, or of this one before a fork
 * or before it was closed, is noticed by its owner and its state. */
static __thread struct taskscope_recorder_ *taskscope_current_;

static inline uintptr_t
taskscope_thread_pointer_(void)
{
#if defined(__x86_64__)
	uintptr_t pointer;
	__asm__("mov %%fs:0, %0" : "=r"(pointer));
	return pointer;
#else
	return (uintptr_t) __builtin_thread_pointer();
#endif
}

static inline uint64_t
taskscope_counter_(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#else
	uint64_t ticks;
	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
	return ticks;
#endif
}

/* kind: 0 a point, 1 a begin whose end is as large, 2 an end. */
static inline __attribute__((always_inline)) void
taskscope_store_(uint32_t head, const void *payload, uint32_t bytes, uint32_t kind)
{
	struct taskscope_recorder_ *r = taskscope_current_;
	if (__builtin_expect(r == NULL || r->owner != taskscope_thread_pointer_(), 0))
		goto slow;
	if (__builtin_expect(__atomic_load_n(&r->gate, __ATOMIC_RELAXED) != 0, 0) && kind != 2) {
		if (r->gate == 1)
			return;
		goto slow;
	}
	if (__builtin_expect(__atomic_load_n(&r->busy, __ATOMIC_RELAXED) != 0, 0))
		goto slow;
	__atomic_store_n(&r->busy, 1, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (__builtin_expect(__atomic_load_n(&r->state, __ATOMIC_RELAXED) != 1, 0))
		goto leave;
	{
		const intptr_t size = 12 + (intptr_t) bytes;
		uint64_t ticks = taskscope_counter_() - r->clock.counter;
		if (__builtin_expect(ticks >= r->clock.span, 0))
			goto leave;
		if (kind == 2) {
			if (__builtin_expect(r->end == NULL || r->region_end - r->end < size, 0))
				goto leave;
			r->end += size;
		} else {
			intptr_t needed = kind == 1 ? 2 * size : size;
			if (__builtin_expect((intptr_t) ((uintptr_t) r->end - (uintptr_t) r->position) < needed, 0))
				goto leave;
			if (kind == 1)
				r->end -= size;
		}
		uint64_t ns = r->clock.ns + (uint64_t) (((unsigned __int128) ticks * r->clock.rate) >> 32);
		ns = ns < r->clock.last ? r->clock.last : ns;
		r->clock.last = ns;
		uint8_t *to = r->position;
		memcpy(to + 12, payload, bytes);
		memcpy(to + 4, &ns, 8);
		/* The first word completes the event: it is stored last. */
#if defined(__x86_64__)
		__atomic_signal_fence(__ATOMIC_RELEASE);
#else
		__atomic_thread_fence(__ATOMIC_RELEASE);
#endif
		memcpy(to, &head, 4);
		r->position = to + size;
		__atomic_store_n(&r->busy, 0, __ATOMIC_RELEASE);
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		if (__builtin_expect(__atomic_load_n(&r->pending, __ATOMIC_RELAXED) != 0, 0))
			taskscope_settle_();
		return;
	}
leave:
	__atomic_store_n(&r->busy, 0, __ATOMIC_RELEASE);
slow:
	taskscope_current_ = taskscope_emit_(head, payload, bytes, kind);
}

/* --- Events -------------------------------------------------------------------------------------- */

/* An open span or task. */
struct taskscope_open {
	uint64_t value;
	uint32_t type;
	uint32_t is_task;
};

/* A point in time. */
static inline void
taskscope_point(void)
{
	taskscope_store_(0x2e424f00u, "", 0, 0);
}

/* `value` (a number from taskscope_value) is `now` from now on; 0 is not recorded. */
static inline void
taskscope_set(uint32_t value, int64_t now)
{
	struct __attribute__((packed)) {
		int64_t value;
		uint32_t type;
	} payload = {now, value};
	if (now != 0)
		taskscope_store_(0x3d4d4f0bu, &payload, 12, 0);
}

/* Begins a span (a number from taskscope_span). While recording is switched off, it is not recorded. */
static inline struct taskscope_open
taskscope_begin(uint32_t span)
{
	struct __attribute__((packed)) {
		uint64_t value;
		uint32_t type;
	} payload = {span, 0};
	struct taskscope_open open = {span, 0, 0};
	if (taskscope_current_ != NULL && __atomic_load_n(&taskscope_current_->gate, __ATOMIC_RELAXED) == 1)
		open.value = 0;
	else
		taskscope_store_(0x5b4d4f0bu, &payload, 12, 1);
	return open;
}

/* Creates a task of a type (a number from taskscope_task_type), to be run now or later, on any thread. */
static inline uint32_t
taskscope_task_create(uint32_t type)
{
	uint32_t payload[2] = {taskscope_task_number(), type};
	taskscope_store_(0x63545607u, payload, 8, 0);
	return payload[0];
}

/* Begins to run a task on this thread. */
static inline struct taskscope_open
taskscope_task_begin(uint32_t task)
{
	uint32_t payload[2] = {task, 0};
	struct taskscope_open open = {task, 0, 1};
	if (taskscope_current_ != NULL && __atomic_load_n(&taskscope_current_->gate, __ATOMIC_RELAXED) == 1)
		open.value = 0;
	else
		taskscope_store_(0x78545607u, payload, 8, 1);
	return open;
}

/* Ends a span or task, on the thread that began it, the last begun first. */
static inline void
taskscope_end(struct taskscope_open open)
{
	struct __attribute__((packed)) {
		uint64_t value;
		uint32_t type;
	} payload = {open.value, 0};
	if (open.value == 0)
		return;
	if (open.is_task)
		taskscope_store_(0x65545607u, &payload, 8, 2);
	else
		taskscope_store_(0x5d4d4f0bu, &payload, 12, 2);
}

/* Any event of a model: three letters, and a payload of `bytes` bytes (0, 4, 8, 12 or 16; constant). */
#define taskscope_event(letters, payload, bytes) \
	taskscope_store_(((bytes) == 0 ? 0u : (uint32_t) (bytes) - 1) | (uint32_t) (uint8_t) (letters)[0] << 8 | \
		(uint32_t) (uint8_t) (letters)[1] << 16 | (uint32_t) (uint8_t) (letters)[2] << 24, (payload), (bytes), 0)

/* Any event of a model with data of any length. */
void taskscope_data(const char *letters, const void *data, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
