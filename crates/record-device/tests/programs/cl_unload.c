/* A stand-in for OpenCL's loader and driver: loads the layer by clInitLayerWithProperties, or by clInitLayer with
 * "legacy", enqueues (with "extensions" by functions of extensions), and unloads it while operations are under way. A call of the driver while it is unloaded ends the
 * program. The last line names what a recorder should have seen. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ENTRIES = 149, GET_DEVICE_INFO = 3, CREATE_QUEUE = 9, RELEASE_QUEUE = 11, QUEUE_INFO = 12, WAIT_FOR_EVENTS = 41,
       EVENT_INFO = 42, RETAIN_EVENT = 43, RELEASE_EVENT = 44, PROFILING_INFO = 45, FLUSH = 46, FINISH = 47, READ = 48, KERNEL = 59, EXTENSION = 107,
       SET_CALLBACK = 81, MARKER = 105 };

typedef void (*ended)(void *, int, void *);
typedef struct { int references, stuck; uint64_t start; ended callback; void *user; void *queue; } event;

static int loaded;
static event events[64];
static int made;
static int queues[4];

#define WHILE_LOADED() do { if (!__atomic_load_n(&loaded, __ATOMIC_SEQ_CST)) { fprintf(stderr, "%s after unloading\n", __func__); abort(); } } while (0)

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static int answer(const void *value, size_t bytes, size_t size, void *to) {
    WHILE_LOADED();
    if (to && size < bytes) return -30;
    if (to) memcpy(to, value, bytes);
    return 0;
}
static int device_info(void *device, unsigned what, size_t size, void *to, size_t *back) {
    (void)device, (void)what, (void)back;
    return answer("stand-in", 9, size, to);
}
static void *create(void *context, void *device, uint64_t properties, int *error) {
    static int next;
    WHILE_LOADED();
    (void)context, (void)device, (void)properties;
    if (error) *error = 0;
    return &queues[next++ % 4];
}
static int release_queue(void *queue) { WHILE_LOADED(); (void)queue; return 0; }
static int queue_info(void *queue, unsigned what, size_t size, void *to, size_t *back) {
    uint64_t value = what == 0x1091 ? (uint64_t)(uintptr_t)queues : what == 0x1092;
    (void)queue, (void)back;
    return answer(&value, what == 0x1092 ? 4 : 8, size, to);
}
static int event_info(event *of, unsigned what, size_t size, void *to, size_t *back) {
    uint64_t value = what == 0x11D0 ? (uint64_t)(uintptr_t)of->queue : (uint64_t)(of->stuck ? 2 : 0);
    (void)back;
    return answer(&value, what == 0x11D0 ? 8 : 4, size, to);
}
static int retain(event *of) { WHILE_LOADED(); __atomic_fetch_add(&of->references, 1, __ATOMIC_SEQ_CST); return 0; }
static int release(event *of) { WHILE_LOADED(); __atomic_fetch_sub(&of->references, 1, __ATOMIC_SEQ_CST); return 0; }
static int profiling(event *of, unsigned what, size_t size, void *to, size_t *back) {
    uint64_t value = what == 0x1283 ? of->start + 1000 : of->start;
    (void)back;
    return answer(&value, 8, size, to);
}
static int flushed;
static int flush(void *queue) { WHILE_LOADED(); (void)queue; flushed++; return 0; }
static int finish(void *queue) { WHILE_LOADED(); (void)queue; return 0; }
static int wait_for(unsigned count, event **of) { WHILE_LOADED(); (void)count, (void)of; return 0; }
static event *make(void *queue, int stuck) {
    WHILE_LOADED();
    event *of = &events[__atomic_fetch_add(&made, 1, __ATOMIC_SEQ_CST)];
    *of = (event){.references = 1, .stuck = stuck, .start = now() + 500, .queue = queue};
    return of;
}
static int marker(void *queue, unsigned count, void *list, event **out) {
    (void)count, (void)list;
    *out = make(queue, 0);
    while (now() < (*out)->start + 1000) { }
    return 0;
}
/* A kernel of the handle 1 runs, that of 2 never ends. */
static int kernel(void *queue, uintptr_t code, unsigned dimensions, void *offset, void *global, void *local, unsigned count, void *list, event **out) {
    (void)dimensions, (void)offset, (void)global, (void)local, (void)count, (void)list;
    *out = make(queue, code == 2);
    while (now() < (*out)->start + 1000) { }
    return 0;
}
static int read_buffer(void *queue, void *buffer, unsigned blocking, size_t offset, size_t size, void *to, unsigned count, void *list, event **out) {
    (void)buffer, (void)blocking, (void)offset, (void)size, (void)to, (void)count, (void)list;
    *out = make(queue, 0);
    while (now() < (*out)->start + 1000) { }
    return 0;
}
/* Functions of extensions, which the driver gives by name. */
static int extension(void *queue, event **out) {
    *out = make(queue, 0);
    while (now() < (*out)->start + 1000) { }
    return 0;
}
static int copy_memory(void *queue, unsigned blocking, void *to, const void *from, size_t size, unsigned count, void *list, event **out) {
    (void)count, (void)list;
    if (blocking) memcpy(to, from, size);
    return extension(queue, out);
}
static int fill_memory(void *queue, void *to, const void *pattern, size_t of, size_t size, unsigned count, void *list, event **out) {
    (void)to, (void)pattern, (void)of, (void)size, (void)count, (void)list;
    return extension(queue, out);
}
static void *create_buffer(unsigned count, void **of, void *properties, int *error) {
    static int buffer;
    WHILE_LOADED();
    (void)of, (void)properties;
    if (error) *error = count == 1 ? 0 : -30;
    return count == 1 ? &buffer : NULL;
}
static int enqueue_buffer(unsigned count, void **of, void *buffer, unsigned events_count, void *list, event **out) {
    (void)buffer, (void)events_count, (void)list;
    return extension(count ? of[0] : NULL, out);
}
static int unknown(void) { WHILE_LOADED(); return 77; }
static void *address_of(void *platform, const char *name) {
    WHILE_LOADED();
    if (platform != queues) return NULL;
    if (!strcmp(name, "clEnqueueMemcpyINTEL")) return copy_memory;
    if (!strcmp(name, "clEnqueueMemFillINTEL")) return fill_memory;
    if (!strcmp(name, "clCreateCommandBufferKHR")) return create_buffer;
    if (!strcmp(name, "clEnqueueCommandBufferKHR")) return enqueue_buffer;
    return strcmp(name, "clUnknownINTEL") ? NULL : unknown;
}
static int set_callback(event *of, int status, ended callback, void *user) {
    WHILE_LOADED();
    (void)status;
    if (!of->stuck) callback(of, 0, user);
    else of->callback = callback, of->user = user;
    return 0;
}

static void *below[ENTRIES];
static void **layer;
static int (*deinit)(void);

static void load(const char *path, int legacy) {
    void *library = dlopen(path, RTLD_NOW);
    if (!library) { fprintf(stderr, "%s\n", dlerror()); exit(2); }
    int (*info)(unsigned, size_t, void *, size_t *) = (int (*)(unsigned, size_t, void *, size_t *))dlsym(library, "clGetLayerInfo");
    int (*old)(unsigned, void **, unsigned *, void ***) = (int (*)(unsigned, void **, unsigned *, void ***))dlsym(library, "clInitLayer");
    int (*new)(unsigned, void **, unsigned *, void ***, const uint64_t *) =
        (int (*)(unsigned, void **, unsigned *, void ***, const uint64_t *))dlsym(library, "clInitLayerWithProperties");
    deinit = (int (*)(void))dlsym(library, "clDeinitLayer");
    unsigned version = 0, entries = 0;
    if (!info || !old || !new || !deinit || info(0x4240, sizeof version, &version, NULL) || version != 100) exit(3);
    __atomic_store_n(&loaded, 1, __ATOMIC_SEQ_CST);
    if (legacy ? old(ENTRIES, below, &entries, &layer) : new(ENTRIES, below, &entries, &layer, NULL)) exit(4);
    dlclose(library);
}

/* The driver is gone from now on. */
static void unload(void) {
    if (deinit()) exit(5);
    __atomic_store_n(&loaded, 0, __ATOMIC_SEQ_CST);
}

static void use(int kernels, int stuck) {
    void *queue = ((void *(*)(void *, void *, uint64_t, int *))layer[CREATE_QUEUE])(NULL, queues, 0, NULL);
    typedef int enqueue(void *, uintptr_t, unsigned, void *, void *, void *, unsigned, void *, event **);
    for (int i = 0; i < kernels; i++) ((enqueue *)layer[KERNEL])(queue, 1, 1, NULL, NULL, NULL, 0, NULL, NULL);
    for (int i = 0; i < stuck; i++) ((enqueue *)layer[KERNEL])(queue, 2, 1, NULL, NULL, NULL, 0, NULL, NULL);
}

/* Copies, fills and runs a command buffer by functions of extensions: 4 operations. */
static void extend(void) {
    typedef void *get(void *, const char *);
    get *address = (get *)layer[EXTENSION];
    void *queue = ((void *(*)(void *, void *, uint64_t, int *))layer[CREATE_QUEUE])(NULL, queues, 0, NULL);
    int (*copy)(void *, unsigned, void *, const void *, size_t, unsigned, void *, event **) = address(queues, "clEnqueueMemcpyINTEL");
    int (*fill)(void *, void *, const void *, size_t, size_t, unsigned, void *, event **) = address(queues, "clEnqueueMemFillINTEL");
    void *(*create_list)(unsigned, void **, void *, int *) = address(queues, "clCreateCommandBufferKHR");
    int (*run_list)(unsigned, void **, void *, unsigned, void *, event **) = address(queues, "clEnqueueCommandBufferKHR");
    if (address(queues, "clEnqueueMemcpyINTEL") != (void *)copy || copy == copy_memory) exit(9);
    if (address(queues, "clUnknownINTEL") != unknown || address(queues, "clNone") || address(NULL, "clEnqueueMemcpyINTEL")) exit(10);
    char to[4] = "", from[4] = "abc";
    if (copy(queue, 1, to, from, sizeof to, 0, NULL, NULL) || strcmp(to, from)) exit(11);
    event *own = NULL;
    if (fill(queue, to, from, 1, sizeof to, 0, NULL, &own) || !own) exit(12);
    release(own);
    void *list = create_list(1, &queue, NULL, NULL);
    if (!list || run_list(0, NULL, list, 0, NULL, NULL) || run_list(1, &queue, list, 0, NULL, NULL)) exit(13);
}

/* As a loader's destructor, which runs after all exit handlers, and after those of the drivers. */
static int at_end;
static void __attribute__((destructor)) end(void) {
    if (!at_end) return;
    __atomic_store_n(&loaded, 0, __ATOMIC_SEQ_CST);
    if (deinit()) _exit(6);
}

int main(int count, char **arguments) {
    int legacy = count > 2 && strcmp(arguments[2], "legacy") == 0;
    void *table[][2] = {{(void *)GET_DEVICE_INFO, device_info}, {(void *)CREATE_QUEUE, create}, {(void *)RELEASE_QUEUE, release_queue},
                        {(void *)QUEUE_INFO, queue_info}, {(void *)WAIT_FOR_EVENTS, wait_for}, {(void *)EVENT_INFO, event_info},
                        {(void *)RETAIN_EVENT, retain}, {(void *)RELEASE_EVENT, release}, {(void *)PROFILING_INFO, profiling},
                        {(void *)FLUSH, flush}, {(void *)FINISH, finish}, {(void *)READ, read_buffer}, {(void *)KERNEL, kernel}, {(void *)SET_CALLBACK, set_callback},
                        {(void *)MARKER, marker}, {(void *)EXTENSION, address_of}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) below[(uintptr_t)table[i][0]] = table[i][1];
    load(arguments[1], legacy);
    if (count > 2 && !strcmp(arguments[2], "extensions")) {
        extend();
        unload();
        puts("4 of extensions");
        return 0;
    }
    use(10, legacy ? 0 : 3);
    if (!legacy) {
        unload();
        int held = 0;
        for (int i = 0; i < made; i++) held += events[i].references != 0;
        if (flushed != 1) { printf("flushed %d times\n", flushed); return 8; }
        if (held) { printf("%d events are held\n", held); return 7; }
        /* The recorder goes on; the driver's handles may be used again. */
        struct timespec pause = {0, 20000000};
        nanosleep(&pause, NULL);
        load(arguments[1], 0);
        use(5, 1);
    }
    at_end = 1;
    puts(legacy ? "10 ran" : "15 ran, 4 did not");
    return 0;
}
