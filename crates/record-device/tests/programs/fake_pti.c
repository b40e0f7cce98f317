/* A stand-in for PTI that delivers as PTI was seen to (issue 54 of its repository, and by reading its
 * source): buffers of whoever processed a completion, delivered late and in any order; a clock that is
 * mapped anew for each operation; records dropped by a flush that races with an insertion. */
#include "fake_pti.h"
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, END_OF_BUFFER = 1 };
enum { KERNEL = 1, OVERHEAD = 5, CALL = 6, COPY = 8, FILL = 9, SYNC = 11 };

typedef void (*requested)(unsigned char **, size_t *);
typedef void (*completed)(unsigned char *, size_t, size_t);
typedef struct { uint32_t kind; uint64_t id, kernel; const char *name; } operation;
typedef struct { uint32_t domain, properties; void *list, *queue, *device; uint32_t phase, result, correlation, count; operation *details; } append_data;
typedef void (*callback)(uint32_t, uint32_t, uint32_t, void *, void *, void *, void **);

typedef struct { uint32_t kind; void *queue, *context; const char *name, *source; uint64_t line, id; uint32_t correlation, thread;
                 char pci[16]; uint8_t uuid[16]; uint64_t append, start, end, submit, task_begin, enqueue_begin, node, sycl_queue;
                 uint32_t invocation; } kernel_record;
typedef struct { uint32_t kind, type, src, dst; void *queue, *context; const char *name; char pci[16]; uint8_t uuid[16]; uint64_t id;
                 uint32_t correlation, thread; uint64_t append, start, end, submit, bytes, sycl_queue; } copy_record;
typedef struct { uint32_t kind, type; void *queue, *context; const char *name; char pci[16]; uint8_t uuid[16]; uint64_t id;
                 uint32_t correlation, thread; uint64_t append, start, end, submit, bytes, value, sycl_queue; } fill_record;
typedef struct { uint32_t kind; uint64_t start, end; uint32_t group, call, process, thread, correlation, result; } call_record;
typedef struct { uint32_t kind; uint64_t start, end; uint32_t thread, call; uint64_t count, duration; uint32_t type; } overhead_record;
typedef struct { uint32_t kind, type; void *context, *queue, *event; uint64_t start, end; uint32_t thread, correlation, waits, result, call, group; } sync_record;
_Static_assert(offsetof(kernel_record, append) == 96 && offsetof(copy_record, append) == 88, "as documented");
_Static_assert(offsetof(fill_record, append) == 80 && offsetof(sync_record, start) == 32, "as documented");

typedef struct { unsigned char *memory; size_t size, used; } buffer;
static buffer buffers[4];
static requested on_request;
static completed on_complete;
static callback on_append;
static uint64_t (*clock_of_trace)(void);
static int callbacks_work = 1;

void fake_without_callbacks(void) { callbacks_work = 0; }
uint64_t fake_now(void) { return clock_of_trace ? clock_of_trace() : 1; }

int ptiViewSetCallbacks(requested request, completed complete) { on_request = request; on_complete = complete; return SUCCESS; }
int ptiViewEnable(uint32_t kind) { (void)kind; return SUCCESS; }
int ptiViewSetTimestampCallback(uint64_t (*function)(void)) { clock_of_trace = function; return SUCCESS; }
uint64_t ptiViewGetTimestamp(void) { return fake_now(); }
int ptiCallbackSubscribe(void **subscriber, callback function, void *user) { (void)user; *subscriber = &on_append; on_append = function; return SUCCESS; }
int ptiCallbackEnableDomain(void *subscriber, uint32_t domain, uint32_t enter, uint32_t leave) { (void)subscriber; (void)domain; (void)enter; (void)leave; return SUCCESS; }
int ptiViewGetApiIdName(uint32_t group, uint32_t id, const char **name) { *name = id == 7 ? "urQueueFinish" : "urEnqueueKernelLaunch"; return group == 3 ? SUCCESS : 3; }

static size_t size_of(uint32_t kind) {
    switch (kind) {
    case KERNEL: return sizeof(kernel_record);
    case COPY: return sizeof(copy_record);
    case FILL: return sizeof(fill_record);
    case CALL: return sizeof(call_record);
    case OVERHEAD: return sizeof(overhead_record);
    default: return sizeof(sync_record);
    }
}
int ptiViewGetNextRecord(unsigned char *memory, size_t valid, unsigned char **record) {
    size_t at = *record ? (size_t)(*record - memory) + size_of(*(uint32_t *)*record) : 0;
    if (at >= valid) return END_OF_BUFFER;
    *record = memory + at;
    return SUCCESS;
}

void fake_deliver(int index, int again) {
    buffer full = buffers[index];
    buffers[index].memory = NULL;
    if (!full.memory) return;
    on_complete(full.memory, full.size, full.used);
    if (again) on_complete(full.memory, full.size, full.used);
}
static int quiet;
void fake_no_flush(int value) { quiet = value; }
int ptiFlushAllViews(void) {
    for (int index = 0; index < 4 && !quiet; index++) fake_deliver(index, 0);
    return SUCCESS;
}

static void put(int index, const void *record, size_t size) {
    buffer *to = &buffers[index];
    if (!to->memory) { to->used = 0; on_request(&to->memory, &to->size); }
    memcpy(to->memory + to->used, record, size);
    to->used += size;
}

uint64_t fake_append(void *list, void *queue, uint64_t id, const char *name, int is_kernel, uint32_t result) {
    uint64_t time = fake_now();
    if (!on_append || !callbacks_work) return time;
    operation details = {is_kernel ? 1 : 2, id, 0, name};
    append_data data = {4, 2, list, queue, (void *)0xd0, 1, 0, (uint32_t)id, 1, &details};
    on_append(4, 1, 0, (void *)0xc0, &data, NULL, NULL);
    data.phase = 2;
    data.result = result;
    on_append(4, 1, 0, (void *)0xc0, &data, NULL, NULL);
    return time;
}
void fake_kernel(int to, void *queue, uint64_t id, const char *name, uint32_t thread, uint64_t append, uint64_t submit, uint64_t start, uint64_t end) {
    kernel_record record = {.kind = KERNEL, .queue = queue, .context = (void *)0xc0, .name = name, .id = id, .correlation = (uint32_t)id,
                            .thread = thread, .uuid = {1}, .append = append, .submit = submit, .start = start, .end = end,
                            .node = 5, .sycl_queue = 3, .invocation = (uint32_t)id};
    put(to, &record, sizeof record);
}
void fake_copy(int to, void *queue, uint64_t id, int to_device, uint32_t thread, uint64_t append, uint64_t start, uint64_t end) {
    copy_record record = {.kind = COPY, .type = to_device ? 2 : 8, .queue = queue, .context = (void *)0xc0,
                          .name = to_device ? "zeCommandListAppendMemoryCopy(M2D)" : "zeCommandListAppendMemoryCopy(D2M)", .id = id,
                          .correlation = (uint32_t)id, .thread = thread, .uuid = {1}, .append = append, .submit = append + 100, .start = start,
                          .end = end, .bytes = 64, .sycl_queue = UINT64_MAX - 1};
    put(to, &record, sizeof record);
}
void fake_fill(int to, void *queue, uint64_t id, uint32_t thread, uint64_t append, uint64_t start, uint64_t end) {
    fill_record record = {.kind = FILL, .queue = queue, .context = (void *)0xc0, .name = "zeCommandListAppendMemoryFill(D)", .id = id,
                          .thread = thread, .uuid = {1}, .append = append, .submit = append + 100, .start = start, .end = end, .bytes = 256};
    put(to, &record, sizeof record);
}
void fake_call(int to, uint32_t call, uint32_t thread, uint32_t correlation, uint64_t start, uint64_t end) {
    call_record record = {.kind = CALL, .start = start, .end = end, .group = 3, .call = call, .thread = thread, .correlation = correlation};
    put(to, &record, sizeof record);
}
void fake_overhead(int to, uint32_t thread, uint64_t start, uint64_t end) {
    overhead_record record = {.kind = OVERHEAD, .start = start, .end = end, .thread = thread, .count = 1, .duration = end - start, .type = 3};
    put(to, &record, sizeof record);
}
void fake_wait(int to, void *queue, uint32_t thread, uint64_t start, uint64_t end) {
    sync_record record = {.kind = SYNC, .type = 6, .queue = queue, .start = start, .end = end, .thread = thread};
    put(to, &record, sizeof record);
}
