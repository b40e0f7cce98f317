// A program with a static part of ITT of its own: the table of functions, as the public header lays it out, which the
// collector that INTEL_LIBITTNOTIFY64 names fills.
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct {
    const char *name;
    void **target;
    void *initial, *empty;
    int group;
} function_t;

typedef struct {
    unsigned char magic[8];
    unsigned long version[3];
    long initialized, mutex_initialized, counter;
    pthread_mutex_t mutex;
    void *library, *error_handler;
    const char **path;
    function_t *functions;
} global_t;

typedef struct {
    unsigned long long words[3];
} identity_t;

typedef void *(*create_t)(const char *);
typedef void (*task_begin_t)(void *, identity_t, identity_t, void *);
typedef void (*end_t)(void *);
typedef void (*of_id_t)(void *, identity_t);
typedef void (*frame_t)(void *, identity_t *);
typedef void *(*counter_t)(const char *, const char *);
typedef void (*value_t)(void *, void *);
typedef void *(*typed_t)(const char *, const char *, int);
typedef int (*event_create_t)(const char *, int);
typedef int (*event_t)(int);
typedef void (*sync_create_t)(void *, const char *, const char *, int);
typedef void (*sync_t)(void *);
typedef void (*relation_t)(void *, identity_t, int, identity_t);
typedef void (*metadata_t)(void *, identity_t, void *, int, size_t, void *);
typedef void (*text_t)(void *, identity_t, void *, const char *, size_t);
typedef void (*control_t)(void);
typedef void (*name_t)(const char *);

enum {
    DOMAIN_CREATE, STRING_CREATE, TASK_BEGIN, TASK_END, OVERLAPPED_BEGIN, OVERLAPPED_END, FRAME_BEGIN, FRAME_END,
    COUNTER_CREATE, COUNTER_CREATE_TYPED, COUNTER_INC, COUNTER_SET, EVENT_CREATE, EVENT_START, EVENT_END, SYNC_CREATE,
    SYNC_PREPARE, SYNC_ACQUIRED, TASK_GROUP, RELATION_ADD, METADATA_ADD, METADATA_STR_ADD, CALLEE_ENTER, CALLEE_LEAVE,
    PAUSE, RESUME, COUNTER_INC_V3, UNKNOWN, THREAD_SET_NAME, COUNT
};

static void nothing(void) {}
static void *functions[COUNT];
static function_t table[COUNT + 1] = {
    {"__itt_domain_create"}, {"__itt_string_handle_create"}, {"__itt_task_begin"}, {"__itt_task_end"},
    {"__itt_task_begin_overlapped"}, {"__itt_task_end_overlapped"}, {"__itt_frame_begin_v3"}, {"__itt_frame_end_v3"},
    {"__itt_counter_create"}, {"__itt_counter_create_typed"}, {"__itt_counter_inc"}, {"__itt_counter_set_value"},
    {"__itt_event_create"}, {"__itt_event_start"}, {"__itt_event_end"}, {"__itt_sync_create"}, {"__itt_sync_prepare"},
    {"__itt_sync_acquired"}, {"__itt_task_group"}, {"__itt_relation_add"}, {"__itt_metadata_add"},
    {"__itt_metadata_str_add"}, {"__itt_stack_callee_enter"}, {"__itt_stack_callee_leave"}, {"__itt_pause"},
    {"__itt_resume"}, {"__itt_counter_inc_v3"}, {"__itt_no_such_function"}, {"__itt_thread_set_name"},
    {0},
};
static void *domain;
static identity_t none;

#define CALL(type, number) ((type)functions[number])

static void task(void *name, identity_t id) {
    CALL(task_begin_t, TASK_BEGIN)(domain, id, none, name);
}

static void end(void) {
    CALL(end_t, TASK_END)(domain);
}

// A worker: a callee with tasks; with an argument it lives when the program ends.
static void *worker(void *argument) {
    void *name = CALL(create_t, STRING_CREATE)("piece");
    CALL(name_t, THREAD_SET_NAME)("worker of many pieces");
    CALL(sync_t, CALLEE_ENTER)((void *)8);
    task(name, none);
    end();
    if (argument) {
        task(name, none);
        pthread_barrier_wait(argument);
        for (;;)
            pause();
    }
    CALL(sync_t, CALLEE_LEAVE)((void *)8);
    return 0;
}

int main(void) {
    static global_t global = {.functions = table};
    for (int i = 0; i < COUNT; i++) {
        functions[i] = (void *)nothing;
        table[i].target = &functions[i];
        table[i].empty = i == UNKNOWN ? (void *)main : 0;
    }
    void *library = dlopen(getenv("INTEL_LIBITTNOTIFY64"), RTLD_NOW);
    void (*init)(global_t *, int) = library ? (void (*)(global_t *, int))dlsym(library, "__itt_api_init") : 0;
    if (!init)
        return 2;
    init(&global, ~0);
    if (functions[UNKNOWN] != (void *)main)
        return 3;
    if (!functions[TASK_BEGIN]) { // nothing is recorded
        puts("not recorded");
        return 0;
    }

    create_t string = CALL(create_t, STRING_CREATE);
    domain = CALL(create_t, DOMAIN_CREATE)("example");
    if (domain != CALL(create_t, DOMAIN_CREATE)("example") || string("a") != string("a") || string("a") == string("b"))
        return 4;

    // Nested tasks; ends without a begin.
    for (int i = 0; i < 5; i++) {
        task(string("outer"), none);
        task(string("inner"), none);
        end();
        end();
    }
    end();

    // Overlapped ones.
    identity_t first = {{1}}, second = {{2}};
    task_begin_t overlapped = CALL(task_begin_t, OVERLAPPED_BEGIN);
    overlapped(domain, first, none, string("transfer"));
    overlapped(domain, second, none, string("transfer"));
    CALL(of_id_t, OVERLAPPED_END)(domain, first);
    CALL(of_id_t, OVERLAPPED_END)(domain, second);
    CALL(of_id_t, OVERLAPPED_END)(domain, second);

    // A task with an id alone has the name of its node, chosen by the program or of its kind.
    identity_t node = {{3}}, body = {{4}}, other = {{5}};
    CALL(task_begin_t, TASK_GROUP)(domain, node, none, string("function_node"));
    CALL(task_begin_t, TASK_GROUP)(domain, other, none, string("source_node"));
    CALL(relation_t, RELATION_ADD)(domain, body, 5, node);
    CALL(text_t, METADATA_STR_ADD)(domain, node, string("object_name"), "filter", 6);
    task(string("null"), body);
    end();
    task(0, other);
    end();

    for (int i = 0; i < 3; i++) {
        CALL(frame_t, FRAME_BEGIN)(domain, 0);
        CALL(frame_t, FRAME_END)(domain, 0);
    }
    void *bytes = CALL(counter_t, COUNTER_CREATE)("bytes", "network");
    CALL(sync_t, COUNTER_INC)(bytes);
    CALL(sync_t, COUNTER_INC)(bytes);
    for (int i = 0; i < 3; i++)
        CALL(value_t, COUNTER_INC_V3)(domain, string("messages"));
    double value = 2.6;
    CALL(value_t, COUNTER_SET)(CALL(typed_t, COUNTER_CREATE_TYPED)("load", "", 8), &value);
    long long answer = 42;
    CALL(metadata_t, METADATA_ADD)(domain, none, string("answer"), 2, 1, &answer);

    int event = CALL(event_create_t, EVENT_CREATE)("phase", 5);
    CALL(event_t, EVENT_START)(event);
    CALL(event_t, EVENT_END)(event);

    // A thread that spins prepares again and again.
    int lock;
    CALL(sync_create_t, SYNC_CREATE)(&lock, "lock", "cache lock", 2);
    for (int i = 0; i < 10; i++)
        CALL(sync_t, SYNC_PREPARE)(&lock);
    CALL(sync_t, SYNC_ACQUIRED)(&lock);

    CALL(control_t, PAUSE)();
    task(string("unseen"), none);
    end();
    CALL(control_t, RESUME)();

    pthread_t one, lasting;
    pthread_barrier_t has_begun;
    pthread_create(&one, 0, worker, 0);
    pthread_join(one, 0);
    pthread_barrier_init(&has_begun, 0, 2);
    pthread_create(&lasting, 0, worker, &has_begun);
    pthread_barrier_wait(&has_begun);
    puts("recorded");
    return 0;
}
