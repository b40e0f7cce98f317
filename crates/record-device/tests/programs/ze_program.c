/* A program on the imaginary Level Zero: an immediate list that promises order, one that does not, and a
 * recorded list that is executed three times; with events of its own and without. */
#include <stdint.h>
#include <stdio.h>

int zeInit(uint32_t);
int zeEventPoolCreate(void *, const void *, uint32_t, void **, void **);
int zeEventCreate(void *, const void *, void **);
int zeEventHostReset(void *);
int zeEventHostSynchronize(void *, uint64_t);
int zeCommandListCreate(void *, void *, const void *, void **);
int zeCommandListCreateImmediate(void *, void *, const void *, void **);
int zeCommandListAppendLaunchKernel(void *, const char *, const void *, void *, uint32_t, void **);
int zeCommandListAppendMemoryCopy(void *, void *, const void *, size_t, void *, uint32_t, void **);
int zeCommandListAppendMemoryFill(void *, void *, const void *, size_t, size_t, void *, uint32_t, void **);
int zeCommandListAppendBarrier(void *, void *, uint32_t, void **);
int zeCommandListAppendImageCopyFromMemory(void *, void *, const void *, const void *, void *, uint32_t, void **);
int zeCommandListAppendWaitOnEvents(void *, uint32_t, void **);
int zeCommandListAppendEventReset(void *, void *);
int zeFenceHostSynchronize(void *, uint64_t);
int zeCommandQueueExecuteCommandLists(void *, uint32_t, void **, void *);
int zeCommandQueueSynchronize(void *, uint64_t);

int main(void) {
    void *context = (void *)0xc0, *device = (void *)0xd0, *queue = (void *)0x70;
    struct { uint32_t form; const void *next; uint32_t flags, count; } pool_of = {0x10, NULL, 0, 4};
    struct { uint32_t form; const void *next; uint32_t ordinal, index, flags, mode, priority; } in_order = {0xe, NULL, 0, 0, 2, 0, 0}, loose = {0xe, NULL, 0, 0, 0, 0, 0};
    uint32_t event_of[8] = {0x11};
    void *pool, *event, *first, *second, *recorded;
    zeInit(0);
    zeEventPoolCreate(context, &pool_of, 0, NULL, &pool);
    zeEventCreate(pool, event_of, &event);
    zeCommandListCreateImmediate(context, device, &in_order, &first);
    zeCommandListCreateImmediate(context, device, &loose, &second);
    for (int round = 0; round < 100; round++) {
        zeCommandListAppendMemoryCopy(first, NULL, NULL, 64, NULL, 0, NULL);
        zeCommandListAppendLaunchKernel(first, "saxpy", NULL, event, 0, NULL); /* an event of the program's */
        zeCommandListAppendLaunchKernel(second, "other", NULL, NULL, 0, NULL);
        zeEventHostSynchronize(event, UINT64_MAX);
        zeEventHostReset(event);
    }
    zeCommandListAppendLaunchKernel(first, "fails", NULL, NULL, 0, NULL);
    zeCommandListCreate(context, device, NULL, &recorded);
    zeCommandListAppendMemoryFill(recorded, NULL, NULL, 1, 256, NULL, 0, NULL);
    zeCommandListAppendLaunchKernel(recorded, "recorded", NULL, NULL, 0, NULL);
    for (int execution = 0; execution < 3; execution++) {
        zeCommandQueueExecuteCommandLists(queue, 1, &recorded, NULL);
        zeCommandQueueSynchronize(queue, UINT64_MAX);
    }
    zeFenceHostSynchronize((void *)0xf0, UINT64_MAX);
    /* Barriers and images; an event that the device takes back, so that it serves a second time. */
    void *third, *taken_back;
    zeCommandListCreateImmediate(context, device, &in_order, &third);
    zeEventCreate(pool, event_of, &taken_back);
    zeCommandListAppendImageCopyFromMemory(third, NULL, NULL, NULL, NULL, 0, NULL);
    zeCommandListAppendBarrier(third, NULL, 0, NULL);
    zeCommandListAppendWaitOnEvents(third, 1, &event);
    zeCommandListAppendLaunchKernel(third, "first use", NULL, taken_back, 0, NULL);
    zeCommandListAppendEventReset(third, taken_back);
    zeCommandListAppendLaunchKernel(third, "second use", NULL, taken_back, 0, NULL);
    zeEventHostSynchronize(taken_back, UINT64_MAX);
    puts("done");
    return 0;
}
