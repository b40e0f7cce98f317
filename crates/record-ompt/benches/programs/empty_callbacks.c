/* A tool whose callbacks return at once: what a runtime that has to call anybody costs. It registers what profile
   mode does. */
#include <omp-tools.h>

static void nothing(void) {}

static int initialize(ompt_function_lookup_t lookup, int device, ompt_data_t *data) {
    static const int events[] = {
        ompt_callback_thread_begin,      ompt_callback_thread_end,     ompt_callback_parallel_begin,
        ompt_callback_parallel_end,      ompt_callback_task_create,    ompt_callback_task_schedule,
        ompt_callback_implicit_task,     ompt_callback_work,           ompt_callback_masked,
        ompt_callback_sync_region_wait,  ompt_callback_mutex_acquire,  ompt_callback_mutex_acquired,
        ompt_callback_mutex_released,    ompt_callback_nest_lock,      ompt_callback_reduction,
    };
    ompt_set_callback_t set_callback = (ompt_set_callback_t)lookup("ompt_set_callback");
    (void)device, (void)data;
    for (unsigned i = 0; i < sizeof events / sizeof *events; i++)
        set_callback((ompt_callbacks_t)events[i], (ompt_callback_t)nothing);
    return 1;
}

static void finalize(ompt_data_t *data) { (void)data; }

ompt_start_tool_result_t *ompt_start_tool(unsigned version, const char *runtime) {
    static ompt_start_tool_result_t result = {initialize, finalize, {0}};
    (void)version, (void)runtime;
    return &result;
}
