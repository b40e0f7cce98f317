/* Between the runtime and the tool after it: tells of barriers as LLVM's runtimes up to 16 do, all implicit ones by
   one kind. Preloaded before the tool. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
#include <omp-tools.h>

static ompt_function_lookup_t runtimes_lookup;
static ompt_set_callback_t set_callback;
static ompt_callback_sync_region_t region, region_wait;
static ompt_start_tool_result_t result, *tool;

static ompt_sync_region_t old(ompt_sync_region_t kind) {
    return kind == ompt_sync_region_barrier_implicit_workshare || kind == ompt_sync_region_barrier_implicit_parallel ||
                   kind == ompt_sync_region_barrier_teams
               ? ompt_sync_region_barrier_implicit
               : kind;
}
static void on_region(ompt_sync_region_t kind, ompt_scope_endpoint_t scope, ompt_data_t *parallel, ompt_data_t *task,
                      const void *code) {
    region(old(kind), scope, parallel, task, code);
}
static void on_wait(ompt_sync_region_t kind, ompt_scope_endpoint_t scope, ompt_data_t *parallel, ompt_data_t *task,
                    const void *code) {
    region_wait(old(kind), scope, parallel, task, code);
}
static ompt_set_result_t set(ompt_callbacks_t event, ompt_callback_t callback) {
    if (event == ompt_callback_sync_region && callback) {
        region = (ompt_callback_sync_region_t)callback;
        callback = (ompt_callback_t)on_region;
    } else if (event == ompt_callback_sync_region_wait && callback) {
        region_wait = (ompt_callback_sync_region_t)callback;
        callback = (ompt_callback_t)on_wait;
    }
    return set_callback(event, callback);
}
static ompt_interface_fn_t lookup(const char *name) {
    return strcmp(name, "ompt_set_callback") ? runtimes_lookup(name) : (ompt_interface_fn_t)set;
}
static int initialize(ompt_function_lookup_t runtimes, int device, ompt_data_t *data) {
    runtimes_lookup = runtimes;
    set_callback = (ompt_set_callback_t)runtimes("ompt_set_callback");
    return tool->initialize(lookup, device, &tool->tool_data);
}
static void finalize(ompt_data_t *data) { tool->finalize(&tool->tool_data); }

ompt_start_tool_result_t *ompt_start_tool(unsigned version, const char *runtime) {
    static int asked;
    /* The tool after it asks it, too, as one that may run behind. */
    if (asked++) return 0;
    ompt_start_tool_result_t *(*next)(unsigned, const char *) =
        (ompt_start_tool_result_t * (*)(unsigned, const char *)) dlsym(RTLD_NEXT, "ompt_start_tool");
    tool = next ? next(version, runtime) : 0;
    if (!tool) return 0;
    result.initialize = initialize;
    result.finalize = finalize;
    return &result;
}
