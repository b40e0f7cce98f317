/* A tool of the user's own: keeps a number in every word that the runtime gives to tools, checks that
   it finds it again, and says what it has counted when the runtime ends. */
#include <stdio.h>
#include <omp-tools.h>

static ompt_set_callback_t set_callback;
static ompt_get_task_info_t get_task_info;
static ompt_get_parallel_info_t get_parallel_info;
static unsigned long tasks, runs, regions, members, locks, dependences, faults, flushes;

#define ADD(counter) __atomic_add_fetch(&counter, 1, __ATOMIC_RELAXED)
#define CHECK(condition) do { if (!(condition)) ADD(faults); } while (0)
enum { TASK = 0x7a5c0000, REGION = 0x4e610000, MEMBER = 0x3e3b0000 };

static void parallel_begin(ompt_data_t *task, const ompt_frame_t *frame, ompt_data_t *region, unsigned int n, int flags,
                           const void *code) {
    CHECK(region->value == 0);
    region->value = REGION;
    ADD(regions);
}
static void parallel_end(ompt_data_t *region, ompt_data_t *task, int flags, const void *code) {
    CHECK(region->value == REGION);
}
static void implicit_task(ompt_scope_endpoint_t scope, ompt_data_t *region, ompt_data_t *task, unsigned int team,
                          unsigned int index, int flags) {
    if (scope == ompt_scope_begin) {
        CHECK(task->value == 0);
        task->value = MEMBER;
        ADD(members);
        if (!(flags & ompt_task_initial)) {
            ompt_data_t *found = 0;
            int size;
            CHECK(region->value == REGION);
            CHECK(get_parallel_info(0, &found, &size) == 2 && found && found->value == REGION);
        }
    } else {
        CHECK(task->value == MEMBER);
    }
}
static void task_create(ompt_data_t *task, const ompt_frame_t *frame, ompt_data_t *created, int flags, int depend,
                        const void *code) {
    CHECK(task->value == MEMBER || task->value == TASK);
    created->value = TASK;
    ADD(tasks);
}
static void task_schedule(ompt_data_t *prior, ompt_task_status_t status, ompt_data_t *next) {
    CHECK(prior->value == MEMBER || prior->value == TASK);
    if (status == ompt_task_complete) ADD(runs);
    if (next) CHECK(next->value == MEMBER || next->value == TASK);
}
static void on_dependences(ompt_data_t *task, const ompt_dependence_t *list, int count) {
    CHECK(task->value == TASK && count > 0 && list);
    ADD(dependences);
}
static void mutex_acquired(ompt_mutex_t kind, ompt_wait_id_t wait, const void *code) {
    ompt_data_t *task = 0;
    CHECK(get_task_info(0, 0, &task, 0, 0, 0) == 2 && task && task->value == MEMBER);
    ADD(locks);
}
/* An event that taskscope's tool does not take itself. */
static void flush(ompt_data_t *thread, const void *code) { ADD(flushes); }

static int initialize(ompt_function_lookup_t lookup, int device, ompt_data_t *data) {
    set_callback = (ompt_set_callback_t)lookup("ompt_set_callback");
    get_task_info = (ompt_get_task_info_t)lookup("ompt_get_task_info");
    get_parallel_info = (ompt_get_parallel_info_t)lookup("ompt_get_parallel_info");
#define SET(event) CHECK(set_callback(ompt_callback_##event, (ompt_callback_t)event) == ompt_set_always)
    SET(parallel_begin);
    SET(parallel_end);
    SET(implicit_task);
    SET(task_create);
    SET(task_schedule);
    SET(mutex_acquired);
    SET(flush);
    CHECK(set_callback(ompt_callback_dependences, (ompt_callback_t)on_dependences) == ompt_set_always);
    return data->value == 77;
}
static void finalize(ompt_data_t *data) {
    printf("tool: %lu tasks %lu runs %lu regions %lu members %lu locks %lu dependences %lu faults\n", tasks, runs, regions,
           members, locks, dependences, faults);
    fflush(stdout);
}
ompt_start_tool_result_t *ompt_start_tool(unsigned int version, const char *runtime) {
    static ompt_start_tool_result_t result = {initialize, finalize, {77}};
    return &result;
}
