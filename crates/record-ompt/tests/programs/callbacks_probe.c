/* A tool that registers every callback of OpenMP 5.2 and counts: one line each in PROBE_FILE at the end,
   with its name, what ompt_set_callback answered, and how often it came. */
#include <omp-tools.h>
#include <stdio.h>
#include <stdlib.h>

#define EVENTS(DO) \
    DO(thread_begin) DO(thread_end) DO(parallel_begin) DO(parallel_end) DO(task_create) DO(task_schedule) \
    DO(implicit_task) DO(target) DO(target_data_op) DO(target_submit) DO(control_tool) DO(device_initialize) \
    DO(device_finalize) DO(device_load) DO(device_unload) DO(sync_region_wait) DO(mutex_released) DO(dependences) \
    DO(task_dependence) DO(work) DO(masked) DO(target_map) DO(sync_region) DO(lock_init) DO(lock_destroy) \
    DO(mutex_acquire) DO(mutex_acquired) DO(nest_lock) DO(flush) DO(cancel) DO(reduction) DO(dispatch) DO(target_emi) \
    DO(target_data_op_emi) DO(target_submit_emi) DO(target_map_emi) DO(error)

#define COUNTER(event) \
    static unsigned long count_##event; \
    static int answer_##event; \
    static int on_##event(void) { \
        __atomic_add_fetch(&count_##event, 1, __ATOMIC_RELAXED); \
        return 0; \
    }
EVENTS(COUNTER)

static int initialize(ompt_function_lookup_t lookup, int device, ompt_data_t *data) {
    ompt_set_callback_t set = (ompt_set_callback_t)lookup("ompt_set_callback");
#define SET(event) answer_##event = set(ompt_callback_##event, (ompt_callback_t)on_##event);
    EVENTS(SET)
    return 1;
}

static void finalize(ompt_data_t *data) {
    FILE *file = fopen(getenv("PROBE_FILE"), "a");
    if (!file) return;
#define TELL(event) fprintf(file, #event " %d %lu\n", answer_##event, count_##event);
    EVENTS(TELL)
    fclose(file);
}

ompt_start_tool_result_t *ompt_start_tool(unsigned int version, const char *runtime) {
    static ompt_start_tool_result_t result = {initialize, finalize, {0}};
    return &result;
}
