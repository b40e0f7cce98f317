/* A runtime that calls a tool's callbacks in any order and with anything: wrong kinds, ends without
   begins, pointers that are field offsets from null. Arguments: the tool, a seed, a number of calls. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <omp-tools.h>

enum { EVENTS = 38, WORDS = 24 };
static ompt_callback_t callbacks[EVENTS];
static ompt_data_t tasks[WORDS], regions[WORDS];
static unsigned long state;

static unsigned below(unsigned n) {
    state = state * 6364136223846793005ul + 1442695040888963407ul;
    return (unsigned)(state >> 33) % n;
}
static ompt_set_result_t set_callback(ompt_callbacks_t event, ompt_callback_t callback) {
    if (event <= 0 || event >= EVENTS) return ompt_set_error;
    callbacks[event] = callback;
    return ompt_set_always;
}
static ompt_interface_fn_t lookup(const char *name) {
    return strcmp(name, "ompt_set_callback") ? 0 : (ompt_interface_fn_t)set_callback;
}
/* Mostly a word; now and then what a faulty runtime hands out. */
static ompt_data_t *word(ompt_data_t *words) {
    switch (below(20)) {
    case 0: return 0;
    case 1: return (ompt_data_t *)0x220;
    default: return &words[below(WORDS)];
    }
}
/* Code of the C library stands for user code; this program is the runtime. */
static const void *code(void) {
    static const void *user[] = {(char *)printf + 1, (char *)malloc + 9, (char *)qsort + 4};
    switch (below(8)) {
    case 0: return 0;
    case 1: return (void *)0x220;
    case 2: return (char *)lookup + 3;
    default: return user[below(3)];
    }
}
static int number(int most) { return below(30) ? 1 + (int)below(most) : (int)below(1u << 31) - (1 << 30); }

static void call(int event) {
    static char bytes[256];
    ompt_dispatch_chunk_t chunk = {below(100), below(10)};
    ompt_dependence_t list[4];
    ompt_data_t instance;
    memset(list, 7, sizeof list);
    instance.ptr = below(4) ? (void *)&chunk : (void *)(unsigned long)(below(2) * 0x18);
#define CALL(type, ...) ((ompt_callback_##type##_t)callbacks[event])(__VA_ARGS__)
    switch (callbacks[event] ? event : 0) {
    case ompt_callback_thread_begin: CALL(thread_begin, number(4), word(tasks)); break;
    case ompt_callback_thread_end: if (!below(8)) CALL(thread_end, word(tasks)); break;
    case ompt_callback_parallel_begin:
        CALL(parallel_begin, word(tasks), (ompt_frame_t *)bytes, word(regions), below(9), number(9), code()); break;
    case ompt_callback_parallel_end: CALL(parallel_end, word(regions), word(tasks), number(9), code()); break;
    case ompt_callback_task_create: {
        static const int flags[] = {4, 4, 4, 0x10000004, 0x08000004, 0x48000010, 0x10000008, 1, 2, 0};
        ompt_data_t *created = word(tasks);
        CALL(task_create, word(tasks), (ompt_frame_t *)bytes, created, flags[below(10)], below(2), code()); break;
    }
    case ompt_callback_task_schedule: CALL(task_schedule, word(tasks), number(8), word(tasks)); break;
    case ompt_callback_implicit_task:
        CALL(implicit_task, number(3), word(regions), word(tasks), 1 + below(3), 0, number(2)); break;
    case ompt_callback_dependences: CALL(dependences, word(tasks), below(5) ? list : 0, (int)below(5) - 1); break;
    case ompt_callback_work: CALL(work, number(13), number(3), word(regions), word(tasks), below(9), code()); break;
    case ompt_callback_dispatch: CALL(dispatch, word(regions), word(tasks), 2 + below(4), instance); break;
    case ompt_callback_masked: CALL(masked, number(2), word(regions), word(tasks), code()); break;
    case ompt_callback_cancel: CALL(cancel, word(tasks), number(99), code()); break;
    case ompt_callback_sync_region:
    case ompt_callback_sync_region_wait:
        CALL(sync_region, number(10), number(2), word(regions), word(tasks), code()); break;
    case ompt_callback_mutex_acquire: CALL(mutex_acquire, number(7), 0, 0, below(5), code()); break;
    case ompt_callback_mutex_acquired:
    case ompt_callback_mutex_released: CALL(mutex, number(7), below(5), code()); break;
    case ompt_callback_nest_lock: CALL(nest_lock, number(2), below(5), code()); break;
    }
}

int main(int argc, char **argv) {
    void *tool = argc > 3 ? dlopen(argv[1], RTLD_NOW) : 0;
    if (!tool) return 2;
    ompt_start_tool_result_t *(*start)(unsigned, const char *) =
        (ompt_start_tool_result_t * (*)(unsigned, const char *)) dlsym(tool, "ompt_start_tool");
    ompt_start_tool_result_t *result = start(202111, "mock");
    if (!result || !result->initialize(lookup, 0, &result->tool_data)) return 3;
    state = strtoul(argv[2], 0, 10);
    for (int i = 0, n = atoi(argv[3]); i < n; i++) call((int)below(EVENTS));
    result->finalize(&result->tool_data);
    return 0;
}
