/* A stand-in for CUDA's driver with its CUPTI, which delivers records as badly as real ones were seen
 * to: late, by thread, in other threads' buffers, twice, without times, unfinished, or never. */
#ifndef FAKE_CUPTI_H
#define FAKE_CUPTI_H

#include <stddef.h>
#include <stdint.h>

/* What is wrong with the record of the next operation of this thread. */
enum fake_fault {
    FAKE_FINE = 0,
    FAKE_FAILS,      /* the call returns an error; there is no record */
    FAKE_NEVER,      /* there is no record */
    FAKE_DROPPED,    /* as before, and CUPTI counts it */
    FAKE_UNTIMED,    /* start and end are 0 */
    FAKE_UNFINISHED, /* it still runs at exit */
    FAKE_TWO_PARTS,  /* a copy that gives two records */
    FAKE_INNER_ID,   /* the record has the id of the driver's call, which is not the runtime's */
    FAKE_UNSEEN      /* no callback is made for it */
};

/* As the driver at its start: loads what CUDA_INJECTION64_PATH names. `first_id` is the first
 * correlation id. Returns what the injection returned. */
int fake_start(uint32_t first_id);
/* An operation in a stream (a handle; 0 is the default one): a call of the runtime around one of the driver. */
int fake_launch(uintptr_t stream, const char *kernel, enum fake_fault fault);
int fake_copy(uintptr_t stream, size_t bytes, int to_device, enum fake_fault fault);
/* A copy whose call, once announced, waits for `before` to return: only then the driver takes it. */
int fake_copy_after(uintptr_t stream, size_t bytes, void (*before)(void));
int fake_set(uintptr_t stream, size_t bytes, enum fake_fault fault);
int fake_graph(uintptr_t stream, uint32_t graph);
void fake_begin_capture(uintptr_t stream);
void fake_end_capture(uintptr_t stream);
/* An event stands for what a stream has to do so far; another stream waits for it. A stream joins the
 * capture of the event that it waits for. */
void fake_record_event(uintptr_t event, uintptr_t stream);
void fake_wait_for_event(uintptr_t stream, uintptr_t event);
/* The host waits for a stream. Where it is not `seen`, CUPTI makes no callback, only a record. */
void fake_wait_for_stream(uintptr_t stream, int seen);
void fake_overhead(uint64_t nanos);
/* Waits for everything; what is unfinished stays so. */
void fake_synchronize(void);
/* From now on each buffer is delivered twice. */
void fake_deliver_twice(int twice);
/* Hands over all full and partial buffers, the newest first. */
void fake_deliver(void);

#endif
