/* A tool that does what any profile of states has to: where a task begins, ends or waits it reads the counter and adds to a sum of its
   thread's. Preloaded, it has timers of 100 Hz, too, whose handler does nothing. It registers what profile mode does. */
#define PERIOD 10000000 /* nanoseconds */
#include "empty_handler.c"

#include <omp-tools.h>

#define CAUSES 16
#define OWN static __thread __attribute__((tls_model("initial-exec")))
OWN unsigned long last, sums[CAUSES];
OWN unsigned cause;

static void change(unsigned next) {
    unsigned long now = __builtin_ia32_rdtsc();
    sums[cause % CAUSES] += now - last;
    last = now;
    cause = next;
}

static void on_schedule(ompt_data_t *prior, ompt_task_status_t status, ompt_data_t *next) {
    (void)prior, (void)next;
    change(status);
}

static void on_wait(ompt_sync_region_t kind, ompt_scope_endpoint_t endpoint, ompt_data_t *region, ompt_data_t *task,
                    const void *codeptr) {
    (void)region, (void)task, (void)codeptr;
    change(kind + endpoint);
}

#define ompt_start_tool start_with_empty_callbacks
#define initialize register_empty_callbacks
#include "empty_callbacks.c"
#undef ompt_start_tool
#undef initialize

static int initialize(ompt_function_lookup_t lookup, int device, ompt_data_t *data) {
    ompt_set_callback_t set_callback = (ompt_set_callback_t)lookup("ompt_set_callback");
    register_empty_callbacks(lookup, device, data);
    set_callback(ompt_callback_task_schedule, (ompt_callback_t)on_schedule);
    set_callback(ompt_callback_sync_region_wait, (ompt_callback_t)on_wait);
    return 1;
}

ompt_start_tool_result_t *ompt_start_tool(unsigned version, const char *runtime) {
    static ompt_start_tool_result_t result = {initialize, finalize, {0}};
    (void)version, (void)runtime;
    return &result;
}
