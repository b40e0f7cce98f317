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
 * No function fails: events that cannot be recorded are counted, and the program continues.
 *
 * With TASKSCOPE_OFF defined before it is included, nothing is recorded and no library is needed: every
 * function is an empty one that is inlined, and starting succeeds. Object files with and without it go together.
 *
 * Written from crates/record-capi/src/taskscope.h.in: change that file.
 */
#ifndef TASKSCOPE_H
#define TASKSCOPE_H

#include <stddef.h>
#include <stdint.h>
#ifndef TASKSCOPE_OFF
#include <dlfcn.h>
#include <string.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

#ifndef TASKSCOPE_OFF
#ifdef __cplusplus
#define TASKSCOPE_ASSERT_(condition) static_assert(condition, "taskscope.h: layout")
#else
#define TASKSCOPE_ASSERT_(condition) __extension__ _Static_assert(condition, "taskscope.h: layout")
#endif

/* --- Process and threads ------------------------------------------------------------------------ */

/* Starts recording into `directory`, or TASKSCOPE_TRACE_DIR if it is NULL. Loads the sinks of TASKSCOPE_SINKS,
 * which need no directory. Returns 0, or -1 without a directory and sinks. */
int taskscope_start(const char *directory);
/* Ends recording; the end of the program does so too. */
void taskscope_finish(void);
/* Ends recording on the calling thread; the end of the thread does so too. */
void taskscope_thread_end(void);
/* Switches recording on (not 0) or off for all threads. The ends of open spans and tasks are still recorded. */
void taskscope_switch(int on);
/* Nanoseconds of CLOCK_MONOTONIC. */
uint64_t taskscope_clock(void);

/* --- Names: request each once ------------------------------------------------------------------- */

uint32_t taskscope_span(const char *name);
uint32_t taskscope_value(const char *title);
uint32_t taskscope_task_type(const char *name);

/* --- Names of data ------------------------------------------------------------------------------- */

int taskscope_any_omp_(void) __asm__("omp_get_max_threads") __attribute__((weak));

/* Names `bytes` bytes from `data` on: reports use the name for dependences on addresses in them. Of nested
 * ranges the narrowest counts, of equal ones the last that was named. NULL removes the names in the range, for
 * example before `free`. Works in any program under `taskscope record` and needs no library; without recording it
 * does nothing. Takes about a microsecond. */
static inline void
taskscope_name_data(const void *data, size_t bytes, const char *name)
{
	static const char *const recorders[] = {"libtaskscope_ompt.so", "libtaskscope_mpi.so", "libtaskscope.so.1"};
	/* An OpenMP runtime loads its tool when it is first used. */
	if (taskscope_any_omp_ != NULL)
		(void) taskscope_any_omp_();
	for (size_t i = 0; i < sizeof(recorders) / sizeof(recorders[0]); i++) {
		void *library = dlopen(recorders[i], RTLD_LAZY | RTLD_NOLOAD);
		if (library == NULL)
			continue;
		void *found = dlsym(library, "taskscope_name_data_");
		if (found != NULL) {
			void (*set_name)(const void *, size_t, const char *);
			memcpy(&set_name, &found, sizeof(set_name));
			set_name(data, bytes, name);
		}
		dlclose(library);
	}
}

/* --- Inline emission: private up to the next heading ---------------------------------------------- */

__extension__ typedef unsigned __int128 taskscope_wide_;

struct taskscope_recorder_ {
	uint32_t state, busy, pending, filter;
	uintptr_t owner;
	void *user;
	struct {
		uint64_t counter, ns, rate, span, last;
	} clock;
	uint8_t *position, *end, *region_end;
	uint8_t between_[184 - 88 - 8];
	uint8_t *own_position, *own_end;
};

TASKSCOPE_ASSERT_(offsetof(struct taskscope_recorder_, state) == 0);
TASKSCOPE_ASSERT_(offsetof(struct taskscope_recorder_, pending) == 8);
TASKSCOPE_ASSERT_(offsetof(struct taskscope_recorder_, filter) == 12);
TASKSCOPE_ASSERT_(offsetof(struct taskscope_recorder_, owner) == 16);
TASKSCOPE_ASSERT_(offsetof(struct taskscope_recorder_, clock) == 32);
TASKSCOPE_ASSERT_(offsetof(struct taskscope_recorder_, position) == 72);
TASKSCOPE_ASSERT_(offsetof(struct taskscope_recorder_, end) == 80);
TASKSCOPE_ASSERT_(offsetof(struct taskscope_recorder_, region_end) == 88);
TASKSCOPE_ASSERT_(offsetof(struct taskscope_recorder_, own_position) == 184);
TASKSCOPE_ASSERT_(offsetof(struct taskscope_recorder_, own_end) == 192);

struct taskscope_recorder_ *taskscope_emit_(uint32_t head, const void *payload, uint32_t bytes, uint32_t kind);
struct taskscope_recorder_ *taskscope_raise_(uint32_t head, const void *payload, uint32_t bytes, uint32_t is_end);
void taskscope_settle_(void);
uint64_t taskscope_context_number_(void);
uint32_t taskscope_task_number(void);

/* This file's copy of the thread's recorder. A recorder of another thread, or of this one before a fork
 * or before it was closed, is noticed by its owner and its state. */
static __thread struct taskscope_recorder_ *taskscope_current_;

static inline uintptr_t
taskscope_thread_pointer_(void)
{
#if defined(__x86_64__)
	uintptr_t pointer;
	/* Must not be kept across a call that may resume on another thread, as with user-level tasks. */
	__asm__ volatile("mov %%fs:0, %0" : "=r"(pointer));
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

/* Kinds of events. Those of the instrument model have their own stream and may be closed on another thread, so
 * no room is reserved for their ends. */
enum {
	TASKSCOPE_POINT_ = 0, TASKSCOPE_BEGIN_ = 1 /* its end has the same size */, TASKSCOPE_END_ = 2,
	TASKSCOPE_MOVES_ = 4, TASKSCOPE_MOVES_END_ = 6
};

/* Records an event. Returns 0 if it is filtered out, and its end with it. All but the payload is constant. */
static inline __attribute__((always_inline)) int
taskscope_store_(uint32_t head, const void *payload, uint32_t bytes, uint32_t kind)
{
	const int moves = (kind & TASKSCOPE_MOVES_) != 0;
	struct taskscope_recorder_ *r = taskscope_current_;
	if (__builtin_expect(r == NULL || r->owner != taskscope_thread_pointer_(), 0))
		goto slow;
	if (__builtin_expect(__atomic_load_n(&r->filter, __ATOMIC_RELAXED) != 0, 0) && kind != TASKSCOPE_END_) {
		if (r->filter == 1 && !(kind & TASKSCOPE_END_))
			return 0;
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
		uint8_t **position = moves ? &r->own_position : &r->position;
		uint8_t **end = moves ? &r->own_end : &r->end;
		uint64_t ticks = taskscope_counter_() - r->clock.counter;
		if (__builtin_expect(ticks >= r->clock.span, 0))
			goto leave;
		if (kind == TASKSCOPE_END_) {
			if (__builtin_expect(*end == NULL || r->region_end - *end < size, 0))
				goto leave;
			*end += size;
		} else {
			const intptr_t needed = kind == TASKSCOPE_BEGIN_ ? 2 * size : size;
			if (__builtin_expect((intptr_t) ((uintptr_t) *end - (uintptr_t) *position) < needed, 0))
				goto leave;
			if (kind == TASKSCOPE_BEGIN_)
				*end -= size;
		}
		uint64_t ns = r->clock.ns + (uint64_t) (((taskscope_wide_) ticks * r->clock.rate) >> 32);
		ns = ns < r->clock.last ? r->clock.last : ns;
		r->clock.last = ns;
		uint8_t *to = *position;
		memcpy(to + 12, payload, bytes);
		memcpy(to + 4, &ns, 8);
		/* The first word completes the event: it is stored last. */
#if defined(__x86_64__)
		__atomic_signal_fence(__ATOMIC_RELEASE);
#else
		__atomic_thread_fence(__ATOMIC_RELEASE);
#endif
		memcpy(to, &head, 4);
		*position = to + size;
		__atomic_store_n(&r->busy, 0, __ATOMIC_RELEASE);
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		if (__builtin_expect(__atomic_load_n(&r->pending, __ATOMIC_RELAXED) != 0, 0))
			taskscope_settle_();
		return 1;
	}
leave:
	__atomic_store_n(&r->busy, 0, __ATOMIC_RELEASE);
slow:
	r = moves ? taskscope_raise_(head, payload, bytes, kind == TASKSCOPE_MOVES_END_)
	          : taskscope_emit_(head, payload, bytes, kind);
	/* No thread owns what is returned for an event that is not wanted. */
	if (r != NULL && r->owner == 0)
		return 0;
	taskscope_current_ = r;
	return 1;
}

/* Begins a span or task for taskscope_end, unless recording is switched off for the thread that emitted last. */
static inline __attribute__((always_inline)) int
taskscope_begin_(uint32_t head, const void *payload, uint32_t bytes)
{
	if (taskscope_current_ != NULL && __atomic_load_n(&taskscope_current_->filter, __ATOMIC_RELAXED) == 1)
		return 0;
	return taskscope_store_(head, payload, bytes, TASKSCOPE_BEGIN_);
}

#endif /* not TASKSCOPE_OFF */

/* --- Events -------------------------------------------------------------------------------------- */

/* An open span or task. */
struct taskscope_open {
	uint64_t value;
	uint32_t type;
	uint32_t is_task;
};

#ifndef TASKSCOPE_OFF

/* Marks a point in time. */
static inline void
taskscope_point(void)
{
	taskscope_store_(0x2e424f00u, "", 0, TASKSCOPE_POINT_);
}

/* Sets `value` (a number from taskscope_value) to `now`; 0 is not recorded. */
static inline void
taskscope_set(uint32_t value, int64_t now)
{
	struct __attribute__((packed)) {
		int64_t value;
		uint32_t type;
	} payload = {now, value};
	if (now != 0)
		taskscope_store_(0x3d4d4f0bu, &payload, 12, TASKSCOPE_POINT_);
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
	if (!taskscope_begin_(0x5b4d4f0bu, &payload, 12))
		open.value = 0;
	return open;
}

/* Creates a task of a type (a number from taskscope_task_type), to be run now or later, on any thread. */
static inline uint32_t
taskscope_task_create(uint32_t type)
{
	uint32_t payload[2] = {taskscope_task_number(), type};
	taskscope_store_(0x63545607u, payload, 8, TASKSCOPE_POINT_);
	return payload[0];
}

/* Begins to run a task on this thread. */
static inline struct taskscope_open
taskscope_task_begin(uint32_t task)
{
	uint32_t payload[2] = {task, 0};
	struct taskscope_open open = {task, 0, 1};
	if (!taskscope_begin_(0x78545607u, payload, 8))
		open.value = 0;
	return open;
}

/* Ends a span or task on the thread that began it, in reverse order of their begins. */
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
		taskscope_store_(0x65545607u, &payload, 8, TASKSCOPE_END_);
	else
		taskscope_store_(0x5d4d4f0bu, &payload, 12, TASKSCOPE_END_);
}

#endif /* not TASKSCOPE_OFF */

/* --- Instrumenting a runtime: keys, states, bursts, messages, tasks that move between threads --------
 *
 * States, bursts and points belong to the task on the thread, else to the thread, and move with it.
 * Request each number once, by name; 0 means that the name is off (TASKSCOPE_LEVEL, TASKSCOPE_ENABLE,
 * TASKSCOPE_DISABLE, taskscope_set_enabled), and everything with it costs a comparison. In a function:
 *
 *	TASKSCOPE_NAMED(size, taskscope_key("cache-malloc", "allocation in the cache", TASKSCOPE_USER));
 *	TASKSCOPE_NAMED(cache, taskscope_state("CACHE", "", TASKSCOPE_RUNTIME));
 *	TASKSCOPE_IN_STATE_AND_BURST(cache, size, bytes);     // up to the end of the scope
 *
 * Mistakes (a close without an open, a task on two threads, ...) are in the trace: taskscope check lists them. */

enum taskscope_level { TASKSCOPE_ENABLED = 0, TASKSCOPE_USER = 2, TASKSCOPE_DEVELOPER = 3, TASKSCOPE_ADVANCED = 5, TASKSCOPE_DISABLED = 7 };
/* How the time in a state counts in a report. */
enum taskscope_class {
	TASKSCOPE_USEFUL, TASKSCOPE_RUNTIME, TASKSCOPE_SCHEDULING, TASKSCOPE_CREATION, TASKSCOPE_SYNCHRONISATION,
	TASKSCOPE_LOCK, TASKSCOPE_COMMUNICATION, TASKSCOPE_IDLE, TASKSCOPE_STOPPED, TASKSCOPE_YIELD
};

#ifndef TASKSCOPE_OFF

uint32_t taskscope_key(const char *name, const char *description, uint32_t level);
/* With a unit of its values ("bytes"); its bursts nest if `stacked` is not 0. */
uint32_t taskscope_key_of(const char *name, const char *description, uint32_t level, const char *unit, int stacked);
/* The number of a key that is registered elsewhere. If it is not, that is a mistake, and counted. */
#define taskscope_find_key(name) taskscope_find_key_((name), __FILE__, __LINE__)
uint32_t taskscope_find_key_(const char *name, const char *file, uint32_t line);
/* A value that stands for this name. */
uint64_t taskscope_key_value(uint32_t key, const char *name, const char *description);
/* Gives a value a name, which it keeps. */
void taskscope_name_value(uint32_t key, uint64_t value, const char *name, const char *description);
/* One of Nanos++'s names ("RUNNING", "IDLE", ...) is that state, whatever the class. */
uint32_t taskscope_state(const char *name, const char *description, uint32_t class_of_time);
uint32_t taskscope_domain(const char *name, const char *description);
uint32_t taskscope_task_kind(const char *name, const char *file, uint32_t line);

/* Enables (not 0) all names that begin with `prefix`, whatever their level, or disables them; states are
 * "state.NAME", message domains "ptp.NAME", kinds of tasks "task.NAME". Of several prefixes that fit the
 * longest decides. TASKSCOPE_NAMED asks again; numbers that a program keeps itself it must ask for again. */
void taskscope_set_enabled(const char *prefix, int enabled);

/* What a call site keeps: 0 until it has asked, its number, or that it is off. All of it is the library's. */
struct taskscope_site_ {
	uint32_t number, listed;
	struct taskscope_site_ *next;
};
enum { TASKSCOPE_SITE_IS_OFF_ = -1 };

uint64_t taskscope_site_asks_(struct taskscope_site_ *site);
uint32_t taskscope_site_keeps_(struct taskscope_site_ *site, uint64_t asked, uint32_t number);

/* Asks for a number at the first passage, and keeps it until names are enabled or disabled. Where nothing is
 * recorded, or the name is off, it costs one load. A shared object whose code has passed here is not unloaded. */
#define TASKSCOPE_NAMED(variable, ask) \
	static struct taskscope_site_ variable##_site_; \
	uint32_t variable = __atomic_load_n(&variable##_site_.number, __ATOMIC_RELAXED); \
	if (__builtin_expect(variable == 0, 0)) { \
		const uint64_t variable##_asked_ = taskscope_site_asks_(&variable##_site_); \
		if (variable##_asked_ != 0) \
			variable = taskscope_site_keeps_(&variable##_site_, variable##_asked_, (ask)); \
	} else if (variable == (uint32_t) TASKSCOPE_SITE_IS_OFF_) { \
		variable = 0; \
	} \
	(void) variable

#endif /* not TASKSCOPE_OFF */

/* Of a message whose other side is not known. */
#define TASKSCOPE_NO_PARTNER 0xffffffffu

struct __attribute__((packed)) taskscope_pair {
	uint32_t key;
	uint64_t value;
};

#ifndef TASKSCOPE_OFF

/* States: a stack. They return 0 if the event was not wanted. */
static inline int
taskscope_state_push(uint32_t state)
{
	uint32_t number = state - 1;
	return state != 0 && taskscope_store_(0x70534903u, &number, 4, TASKSCOPE_MOVES_);
}

static inline void
taskscope_state_pop(uint32_t state)
{
	uint32_t number = state - 1;
	if (state != 0)
		taskscope_store_(0x71534903u, &number, 4, TASKSCOPE_MOVES_);
}

/* State changes are sub-states from now on, and until taskscope_states_show. */
static inline void
taskscope_states_hide(void)
{
	taskscope_store_(0x68534900u, "", 0, TASKSCOPE_MOVES_);
}

static inline void
taskscope_states_show(void)
{
	taskscope_store_(0x73534900u, "", 0, TASKSCOPE_MOVES_);
}

/* Bursts: intervals on a key. A close ends the newest burst with this key and value. */
static inline int
taskscope_burst_open(uint32_t key, uint64_t value)
{
	struct taskscope_pair pair = {key, value};
	return key != 0 && taskscope_store_(0x6f42490bu, &pair, 12, TASKSCOPE_MOVES_);
}

static inline void
taskscope_burst_close(uint32_t key, uint64_t value)
{
	struct taskscope_pair pair = {key, value};
	if (key != 0)
		taskscope_store_(0x6342490bu, &pair, 12, TASKSCOPE_MOVES_);
}

struct taskscope_both_ {
	uint32_t state, key;
	uint64_t value;
};

/* A state and a burst together, in one record. */
static inline int
taskscope_state_and_burst_open(uint32_t state, uint32_t key, uint64_t value)
{
	struct taskscope_both_ both = {state - 1, key, value};
	if (state == 0)
		return taskscope_burst_open(key, value);
	if (key == 0)
		return taskscope_state_push(state);
	return taskscope_store_(0x6f41490fu, &both, 16, TASKSCOPE_MOVES_);
}

static inline __attribute__((always_inline)) void
taskscope_close_(uint32_t state, uint32_t key, uint64_t value, uint32_t kind)
{
	struct taskscope_both_ both = {state - 1, key, value};
	struct taskscope_pair pair = {key, value};
	if (state != 0 && key != 0)
		taskscope_store_(0x6341490fu, &both, 16, kind);
	else if (state != 0)
		taskscope_store_(0x71534903u, &both.state, 4, kind);
	else if (key != 0)
		taskscope_store_(0x6342490bu, &pair, 12, kind);
}

static inline void
taskscope_state_and_burst_close(uint32_t state, uint32_t key, uint64_t value)
{
	taskscope_close_(state, key, value, TASKSCOPE_MOVES_);
}

/* A moment. */
static inline void
taskscope_key_point(uint32_t key, uint64_t value)
{
	struct taskscope_pair pair = {key, value};
	if (key != 0)
		taskscope_store_(0x7050490bu, &pair, 12, TASKSCOPE_MOVES_);
}

/* Several pairs as one record; those with key 0 are left out. */
void taskscope_composite(const struct taskscope_pair *pairs, size_t count);

/* Halves of a message: the same domain and id, on any threads and processes of a trace. `partner` names
 * the other side, TASKSCOPE_NO_PARTNER does not; key 0 carries nothing. */
void taskscope_send(uint32_t domain, uint64_t id, uint32_t key, uint64_t value, uint32_t partner);
void taskscope_receive(uint32_t domain, uint64_t id, uint32_t key, uint64_t value, uint32_t partner);

/* Tasks by numbers; 0 is none. */
static inline uint64_t
taskscope_context_create(uint32_t kind)
{
	struct __attribute__((packed)) {
		uint64_t task;
		uint32_t kind;
	} payload = {0, kind};
	if (kind == 0)
		return 0;
	payload.task = taskscope_context_number_();
	return taskscope_store_(0x6354490bu, &payload, 12, TASKSCOPE_MOVES_) ? payload.task : 0;
}

/* This thread takes the task up. */
static inline void
taskscope_context_enter(uint64_t task)
{
	if (task != 0)
		taskscope_store_(0x65544907u, &task, 8, TASKSCOPE_MOVES_);
}

/* This thread puts the task down, which waits for something. */
static inline void
taskscope_context_leave(uint64_t task)
{
	if (task != 0)
		taskscope_store_(0x6c544907u, &task, 8, TASKSCOPE_MOVES_END_);
}

/* This thread puts the task down, which could run on. */
static inline void
taskscope_context_yield(uint64_t task)
{
	if (task != 0)
		taskscope_store_(0x79544907u, &task, 8, TASKSCOPE_MOVES_END_);
}

/* This thread puts one task down and takes another up. */
static inline void
taskscope_context_switch(uint64_t old_task, uint64_t new_task)
{
	uint64_t tasks[2] = {old_task, new_task};
	if ((old_task | new_task) != 0)
		taskscope_store_(0x7354490fu, tasks, 16, TASKSCOPE_MOVES_);
}

/* What the task waited for has come. */
static inline void
taskscope_context_ready(uint64_t task)
{
	if (task != 0)
		taskscope_store_(0x72544907u, &task, 8, TASKSCOPE_MOVES_);
}

/* The task has ended. If this thread has it, it puts it down. */
static inline void
taskscope_context_end(uint64_t task)
{
	if (task != 0)
		taskscope_store_(0x78544907u, &task, 8, TASKSCOPE_MOVES_END_);
}

/* Left for a task, and shown when it next runs. */
void taskscope_point_later(uint64_t task, uint32_t key, uint64_t value);
void taskscope_send_later(uint64_t task, uint32_t domain, uint64_t id, uint32_t key, uint64_t value, uint32_t partner);
void taskscope_receive_later(uint64_t task, uint32_t domain, uint64_t id, uint32_t key, uint64_t value, uint32_t partner);

/* Up to the end of the enclosing scope, in C and C++, whichever way it is left. */
struct taskscope_scope_ {
	uint32_t state, key;
	uint64_t value;
};

static inline struct taskscope_scope_
taskscope_scope_open_(uint32_t state, uint32_t key, uint64_t value)
{
	struct taskscope_scope_ scope = {state, key, value};
	if (!((state | key) != 0 && taskscope_state_and_burst_open(state, key, value)))
		scope.state = scope.key = 0;
	return scope;
}

static inline void
taskscope_scope_close_(struct taskscope_scope_ *scope)
{
	taskscope_close_(scope->state, scope->key, scope->value, TASKSCOPE_MOVES_END_);
}

#define TASKSCOPE_JOIN2_(a, b) a##b
#define TASKSCOPE_JOIN_(a, b) TASKSCOPE_JOIN2_(a, b)
#define TASKSCOPE_IN_STATE_AND_BURST(state, key, value) \
	__attribute__((cleanup(taskscope_scope_close_), unused)) struct taskscope_scope_ TASKSCOPE_JOIN_( \
		taskscope_scope_, __LINE__) = taskscope_scope_open_((state), (key), (value))

#endif /* not TASKSCOPE_OFF */

#define TASKSCOPE_IN_STATE(state) TASKSCOPE_IN_STATE_AND_BURST(state, 0, 0)
#define TASKSCOPE_IN_BURST(key, value) TASKSCOPE_IN_STATE_AND_BURST(0, key, value)

/* --- Sinks: functions that hear events while the program runs -------------------------------------- */

/* How a sink wants switches of tasks to look: of what the old task has open and the new one, the innermost
 * state or all of them, of each key the newest burst or all. RAW tells of switches, and repeats nothing. */
enum taskscope_behaviour {
	TASKSCOPE_PLAIN, TASKSCOPE_STACKED_STATES, TASKSCOPE_STACKED_BURSTS, TASKSCOPE_STACKED, TASKSCOPE_RAW
};

enum taskscope_what {
	TASKSCOPE_STATE_BEGINS, TASKSCOPE_STATE_ENDS, TASKSCOPE_SUBSTATE_BEGINS, TASKSCOPE_SUBSTATE_ENDS,
	TASKSCOPE_BURST_BEGINS, TASKSCOPE_BURST_ENDS, TASKSCOPE_POINT_PASSED, TASKSCOPE_COMPOSITE_PASSED,
	TASKSCOPE_MESSAGE_SENT, TASKSCOPE_MESSAGE_RECEIVED,
	/* With TASKSCOPE_RAW only. */
	TASKSCOPE_TASK_CREATED, TASKSCOPE_TASK_READY, TASKSCOPE_TASK_TAKEN_UP, TASKSCOPE_TASK_PUT_DOWN,
	TASKSCOPE_TASK_ENDED
};

/* What a thread shows. Numbers are those that taskscope_state, taskscope_key, ... gave. */
struct taskscope_shown {
	size_t size;                        /* of this struct; a later version may have more at its end */
	uint64_t at;                        /* nanoseconds of CLOCK_MONOTONIC, as in the trace */
	int32_t thread;                     /* the system's id */
	uint32_t what;                      /* enum taskscope_what */
	uint32_t number;                    /* of the state, the message's domain, or the created task's kind */
	uint32_t key;                       /* of the burst, the point, or what the message carries; or 0 */
	uint64_t value;                     /* of the key */
	uint64_t id;                        /* of the task or the message */
	uint64_t parent;                    /* the task that created this one; 0 is none */
	uint32_t partner;                   /* of the message */
	uint32_t pair_count;                /* of the composite point */
	const struct taskscope_pair *pairs; /* during the call */
};

/* Functions are called one at a time, on any thread, and must be quick and throw nothing. What they raise
 * themselves is not shown, but counted. */
struct taskscope_sink {
	size_t size;        /* sizeof(struct taskscope_sink) */
	uint32_t behaviour; /* enum taskscope_behaviour */
	void (*event)(void *user, const struct taskscope_shown *shown);
	void (*finish)(void *user); /* there are no more events; NULL if that does not matter */
	void *user;
};

enum taskscope_space {
	TASKSCOPE_A_STATE, TASKSCOPE_A_KEY, TASKSCOPE_A_VALUE /* `value` of key `number` */, TASKSCOPE_A_DOMAIN, TASKSCOPE_A_KIND
};

#ifndef TASKSCOPE_OFF

/* Loads a sink until taskscope_finish; before taskscope_start or after. 0, or -1 where it makes no sense. */
int taskscope_add_sink(const struct taskscope_sink *sink);

/* Puts the name of a number into `buffer`, with a NUL, cut to `bytes`; returns its length, 0 for unknown. */
size_t taskscope_name(uint32_t space, uint32_t number, uint64_t value, char *buffer, size_t bytes);

/* --- Any event ------------------------------------------------------------------------------------ */

/* Any event of a model: three letters, and a payload of `bytes` bytes (0, 4, 8, 12 or 16; constant). */
#define taskscope_event(letters, payload, bytes) \
	taskscope_store_(((bytes) == 0 ? 0u : (uint32_t) (bytes) - 1) | (uint32_t) (uint8_t) (letters)[0] << 8 | \
		(uint32_t) (uint8_t) (letters)[1] << 16 | (uint32_t) (uint8_t) (letters)[2] << 24, (payload), (bytes), TASKSCOPE_POINT_)

/* Any event of a model with data of any length. */
void taskscope_data(const char *letters, const void *data, size_t bytes);

#else /* TASKSCOPE_OFF */

/* --- With TASKSCOPE_OFF: the same, empty ------------------------------------------------------------ */

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"

static inline int taskscope_start(const char *directory) { return 0; }
static inline void taskscope_finish(void) { }
static inline void taskscope_thread_end(void) { }
static inline void taskscope_switch(int on) { }
static inline uint64_t taskscope_clock(void) { return 0; }
static inline uint32_t taskscope_span(const char *name) { return 0; }
static inline uint32_t taskscope_value(const char *title) { return 0; }
static inline uint32_t taskscope_task_type(const char *name) { return 0; }
static inline void taskscope_name_data(const void *data, size_t bytes, const char *name) { }
static inline uint32_t taskscope_task_number(void) { return 0; }
static inline void taskscope_point(void) { }
static inline void taskscope_set(uint32_t value, int64_t now) { }
static inline struct taskscope_open taskscope_begin(uint32_t span) { struct taskscope_open open = {0, 0, 0}; return open; }
static inline uint32_t taskscope_task_create(uint32_t type) { return 0; }
static inline struct taskscope_open taskscope_task_begin(uint32_t task) { struct taskscope_open open = {0, 0, 0}; return open; }
static inline void taskscope_end(struct taskscope_open open) { }
static inline uint32_t taskscope_key(const char *name, const char *description, uint32_t level) { return 0; }
static inline uint32_t taskscope_key_of(const char *name, const char *description, uint32_t level, const char *unit, int stacked) { return 0; }
static inline uint64_t taskscope_key_value(uint32_t key, const char *name, const char *description) { return 0; }
static inline void taskscope_name_value(uint32_t key, uint64_t value, const char *name, const char *description) { }
static inline uint32_t taskscope_state(const char *name, const char *description, uint32_t class_of_time) { return 0; }
static inline uint32_t taskscope_domain(const char *name, const char *description) { return 0; }
static inline uint32_t taskscope_task_kind(const char *name, const char *file, uint32_t line) { return 0; }
static inline void taskscope_set_enabled(const char *prefix, int enabled) { }
static inline int taskscope_state_push(uint32_t state) { return 0; }
static inline void taskscope_state_pop(uint32_t state) { }
static inline void taskscope_states_hide(void) { }
static inline void taskscope_states_show(void) { }
static inline int taskscope_burst_open(uint32_t key, uint64_t value) { return 0; }
static inline void taskscope_burst_close(uint32_t key, uint64_t value) { }
static inline int taskscope_state_and_burst_open(uint32_t state, uint32_t key, uint64_t value) { return 0; }
static inline void taskscope_state_and_burst_close(uint32_t state, uint32_t key, uint64_t value) { }
static inline void taskscope_key_point(uint32_t key, uint64_t value) { }
static inline void taskscope_composite(const struct taskscope_pair *pairs, size_t count) { }
static inline void taskscope_send(uint32_t domain, uint64_t id, uint32_t key, uint64_t value, uint32_t partner) { }
static inline void taskscope_receive(uint32_t domain, uint64_t id, uint32_t key, uint64_t value, uint32_t partner) { }
static inline uint64_t taskscope_context_create(uint32_t kind) { return 0; }
static inline void taskscope_context_enter(uint64_t task) { }
static inline void taskscope_context_leave(uint64_t task) { }
static inline void taskscope_context_yield(uint64_t task) { }
static inline void taskscope_context_switch(uint64_t old_task, uint64_t new_task) { }
static inline void taskscope_context_ready(uint64_t task) { }
static inline void taskscope_context_end(uint64_t task) { }
static inline void taskscope_point_later(uint64_t task, uint32_t key, uint64_t value) { }
static inline void taskscope_send_later(uint64_t task, uint32_t domain, uint64_t id, uint32_t key, uint64_t value, uint32_t partner) { }
static inline void taskscope_receive_later(uint64_t task, uint32_t domain, uint64_t id, uint32_t key, uint64_t value, uint32_t partner) { }
static inline int taskscope_add_sink(const struct taskscope_sink *sink) { return 0; }
static inline size_t taskscope_name(uint32_t space, uint32_t number, uint64_t value, char *buffer, size_t bytes) { if (bytes > 0) buffer[0] = 0; return 0; }
static inline void taskscope_data(const char *letters, const void *data, size_t bytes) { }

#pragma GCC diagnostic pop

/* Macros evaluate what the functions in their place would; names are not asked for. */
#define TASKSCOPE_NAMED(variable, ask) \
	uint32_t variable = 0; \
	(void) sizeof(ask); \
	(void) variable
#define TASKSCOPE_IN_STATE_AND_BURST(state, key, value) ((void) (state), (void) (key), (void) (value))
#define taskscope_find_key(name) ((void) (name), (uint32_t) 0)
#define taskscope_event(letters, payload, bytes) ((void) (letters), (void) (payload), (void) (bytes))

#endif

#ifdef __cplusplus
}
#endif

#endif
