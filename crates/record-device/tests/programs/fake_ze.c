/* A stand-in for Level Zero's loader with a driver: operations end by themselves a while after they were
 * submitted, on a device whose stamps have 32 bits and are about to wrap. */
#include <stddef.h>
#include <stdint.h>
#include <pthread.h>
#include <string.h>
#include <stdlib.h>
#include <time.h>

enum { SUCCESS = 0, NOT_READY = 1, FAILS = 0x70000001 };
enum { KERNEL, COPY, FILL, LIST, IMMEDIATE, LIST_RESET, LIST_DESTROY, EXECUTE, POOL, EVENT_RESET, EVENT_DESTROY, QUEUE_WAIT, EVENT_WAIT, BARRIER, IMAGE_IN, FENCE_WAIT, WAIT_ON_EVENTS, CALLS };
typedef void (*callback)(void *, int, void *, void **);
static callback callbacks[CALLS][2];
static int enabled;
static __thread int within; /* calls inside a callback are not reported */

#define NANOS_PER_TICK 52
static uint64_t now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec; }
static uint64_t origin;
static uint64_t ticks(uint64_t time) { return (time - origin) / NANOS_PER_TICK + 0xfffff000u; }

static void tell(int call, int phase, void *arguments, int result) {
    void *instance = NULL;
    if (!enabled || within || !callbacks[call][phase]) return;
    within = 1;
    callbacks[call][phase](arguments, result, NULL, &instance);
    within = 0;
}

int zeInit(uint32_t flags) { (void)flags; if (!origin) origin = now(); return SUCCESS; }
int zelTracerCreate(const void *description, void **tracer) {
    struct { uint32_t form; const void *next; void *user; } given;
    memcpy(&given, description, sizeof given);
    if (given.form != 1 || !given.user || !origin) return 0x78000001;
    *tracer = &enabled;
    return SUCCESS;
}
int zelTracerSetEnabled(void *tracer, uint8_t value) { (void)tracer; enabled = value; return SUCCESS; }
#define REGISTER(name, call) int name(void *tracer, int phase, callback function) { (void)tracer; callbacks[call][phase] = function; return SUCCESS; }
REGISTER(zelTracerCommandListAppendLaunchKernelRegisterCallback, KERNEL)
REGISTER(zelTracerCommandListAppendMemoryCopyRegisterCallback, COPY)
REGISTER(zelTracerCommandListAppendMemoryFillRegisterCallback, FILL)
REGISTER(zelTracerCommandListCreateRegisterCallback, LIST)
REGISTER(zelTracerCommandListCreateImmediateRegisterCallback, IMMEDIATE)
REGISTER(zelTracerCommandListResetRegisterCallback, LIST_RESET)
REGISTER(zelTracerCommandListDestroyRegisterCallback, LIST_DESTROY)
REGISTER(zelTracerCommandQueueExecuteCommandListsRegisterCallback, EXECUTE)
REGISTER(zelTracerEventPoolCreateRegisterCallback, POOL)
REGISTER(zelTracerEventHostResetRegisterCallback, EVENT_RESET)
REGISTER(zelTracerEventDestroyRegisterCallback, EVENT_DESTROY)
REGISTER(zelTracerCommandQueueSynchronizeRegisterCallback, QUEUE_WAIT)
REGISTER(zelTracerEventHostSynchronizeRegisterCallback, EVENT_WAIT)
REGISTER(zelTracerCommandListAppendBarrierRegisterCallback, BARRIER)
REGISTER(zelTracerCommandListAppendImageCopyFromMemoryRegisterCallback, IMAGE_IN)
REGISTER(zelTracerFenceHostSynchronizeRegisterCallback, FENCE_WAIT)
REGISTER(zelTracerCommandListAppendWaitOnEventsRegisterCallback, WAIT_ON_EVENTS)

typedef struct { uint32_t flags; } pool;
typedef struct { pool *of; uint64_t start, end; } event;
typedef struct { int immediate; uint64_t free; event *events[64]; int count; } list;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

typedef struct { uint32_t form; const void *next; uint32_t flags, count; } pool_description;
int zeEventPoolCreate(void *context, const pool_description *description, uint32_t devices, void **list_of_devices, void **made) {
    void *arguments[] = {&context, &description, &devices, &list_of_devices, &made};
    tell(POOL, 0, arguments, 0);
    pool *new_pool = calloc(1, sizeof *new_pool);
    new_pool->flags = description->flags;
    *made = new_pool;
    return SUCCESS;
}
int zeEventCreate(void *of, const void *description, void **made) { (void)description; event *new_event = calloc(1, sizeof *new_event); new_event->of = of; *made = new_event; return SUCCESS; }
int zeEventQueryStatus(event *of) {
    pthread_mutex_lock(&lock);
    int ready = of->end && now() >= of->end && (of->of->flags & 1);
    pthread_mutex_unlock(&lock);
    return ready ? SUCCESS : NOT_READY;
}
int zeEventHostReset(event *of) {
    void *arguments[] = {&of};
    tell(EVENT_RESET, 0, arguments, 0);
    of->start = of->end = 0;
    return SUCCESS;
}
int zeEventDestroy(event *of) { void *arguments[] = {&of}; tell(EVENT_DESTROY, 0, arguments, 0); return SUCCESS; }
int zeEventQueryKernelTimestamp(event *of, uint64_t times[4]) {
    if (!(of->of->flags & 4)) return FAILS;
    times[0] = times[2] = ticks(of->start) & 0xffffffffu;
    times[1] = times[3] = ticks(of->end) & 0xffffffffu;
    return SUCCESS;
}
int zeEventHostSynchronize(event *of, uint64_t timeout) {
    void *arguments[] = {&of, &timeout};
    tell(EVENT_WAIT, 0, arguments, 0);
    while (!(of->end && now() >= of->end)) {}
    tell(EVENT_WAIT, 1, arguments, 0);
    return SUCCESS;
}
int zeDeviceGetProperties(void *device, void *properties) {
    (void)device;
    uint8_t *bytes = properties;
    uint64_t resolution = NANOS_PER_TICK;
    uint32_t bits[2] = {64, 32};
    memcpy(bytes + 80, &resolution, 8);
    memcpy(bytes + 88, bits, 8);
    strcpy((char *)bytes + 112, "Imaginary Xe");
    return SUCCESS;
}
int zeDeviceGetGlobalTimestamps(void *device, uint64_t *host, uint64_t *device_ticks) { (void)device; *host = now(); *device_ticks = ticks(*host); return SUCCESS; }
int zeKernelGetName(const char *kernel, size_t *size, char *name) { strncpy(name, kernel, *size); return SUCCESS; }

int zeCommandListCreate(void *context, void *device, const void *description, void **made) {
    void *arguments[] = {&context, &device, &description, &made};
    *made = calloc(1, sizeof(list));
    tell(LIST, 1, arguments, 0);
    return SUCCESS;
}
int zeCommandListCreateImmediate(void *context, void *device, const void *description, void **made) {
    void *arguments[] = {&context, &device, &description, &made};
    list *new_list = calloc(1, sizeof(list));
    new_list->immediate = 1;
    *made = new_list;
    tell(IMMEDIATE, 1, arguments, 0);
    return SUCCESS;
}

/* Under the lock. */
static void run(list *of, event *signal, uint64_t nanos) {
    uint64_t ready = now() + 20000;
    if (!signal) return;
    signal->start = ready > of->free ? ready : of->free;
    of->free = signal->end = signal->start + nanos;
}
static int append(list *of, event *signal, int fails) {
    if (fails) return FAILS;
    pthread_mutex_lock(&lock);
    if (of->immediate) run(of, signal, 10000);
    else of->events[of->count++] = signal;
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}
int zeCommandListAppendLaunchKernel(list *of, const char *kernel, const void *groups, event *signal, uint32_t count, void **waits) {
    void *arguments[] = {&of, &kernel, &groups, &signal, &count, &waits};
    tell(KERNEL, 0, arguments, 0);
    int result = append(of, signal, strcmp(kernel, "fails") == 0);
    tell(KERNEL, 1, arguments, result);
    return result;
}
int zeCommandListAppendMemoryCopy(list *of, void *to, const void *from, size_t size, event *signal, uint32_t count, void **waits) {
    void *arguments[] = {&of, &to, &from, &size, &signal, &count, &waits};
    tell(COPY, 0, arguments, 0);
    int result = append(of, signal, 0);
    tell(COPY, 1, arguments, result);
    return result;
}
int zeCommandListAppendMemoryFill(list *of, void *to, const void *pattern, size_t pattern_size, size_t size, event *signal, uint32_t count, void **waits) {
    void *arguments[] = {&of, &to, &pattern, &pattern_size, &size, &signal, &count, &waits};
    tell(FILL, 0, arguments, 0);
    int result = append(of, signal, 0);
    tell(FILL, 1, arguments, result);
    return result;
}
int zeCommandListAppendBarrier(list *of, event *signal, uint32_t count, void **waits) {
    void *arguments[] = {&of, &signal, &count, &waits};
    tell(BARRIER, 0, arguments, 0);
    int result = append(of, signal, 0);
    tell(BARRIER, 1, arguments, result);
    return result;
}
int zeCommandListAppendImageCopyFromMemory(list *of, void *image, const void *from, const void *region, event *signal, uint32_t count, void **waits) {
    void *arguments[] = {&of, &image, &from, &region, &signal, &count, &waits};
    tell(IMAGE_IN, 0, arguments, 0);
    int result = append(of, signal, 0);
    tell(IMAGE_IN, 1, arguments, result);
    return result;
}
int zeCommandListAppendWaitOnEvents(list *of, uint32_t count, void **events) {
    void *arguments[] = {&of, &count, &events};
    tell(WAIT_ON_EVENTS, 0, arguments, 0);
    tell(WAIT_ON_EVENTS, 1, arguments, 0);
    return SUCCESS;
}
/* The device itself takes the event back: the host is not notified. */
int zeCommandListAppendEventReset(list *of, event *reset) {
    (void)of;
    pthread_mutex_lock(&lock);
    reset->start = reset->end = 0;
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}
static uint64_t queue_free;
int zeFenceHostSynchronize(void *fence, uint64_t timeout) {
    void *arguments[] = {&fence, &timeout};
    tell(FENCE_WAIT, 0, arguments, 0);
    while (now() < queue_free) {}
    tell(FENCE_WAIT, 1, arguments, 0);
    return SUCCESS;
}
int zeCommandQueueExecuteCommandLists(void *queue, uint32_t count, list **lists, void *fence) {
    void *arguments[] = {&queue, &count, &lists, &fence};
    tell(EXECUTE, 0, arguments, 0);
    pthread_mutex_lock(&lock);
    for (uint32_t index = 0; index < count; index++) {
        if (lists[index]->free < queue_free) lists[index]->free = queue_free;
        for (int place = 0; place < lists[index]->count; place++) run(lists[index], lists[index]->events[place], 5000);
        queue_free = lists[index]->free;
    }
    pthread_mutex_unlock(&lock);
    tell(EXECUTE, 1, arguments, 0);
    return SUCCESS;
}
int zeCommandQueueSynchronize(void *queue, uint64_t timeout) {
    void *arguments[] = {&queue, &timeout};
    tell(QUEUE_WAIT, 0, arguments, 0);
    while (now() < queue_free) {}
    tell(QUEUE_WAIT, 1, arguments, 0);
    return SUCCESS;
}
