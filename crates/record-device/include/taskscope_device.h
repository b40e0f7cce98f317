/* Device records in order, for tools and vendors: records go in as they come, from any thread, and come
 * out exactly once, in the order of their queues, in buffers that the consumer provides.
 *
 *     cc tool.c $(pkg-config --cflags --libs taskscope-device)
 *
 * All functions may be called from any thread, but not from within
 * the callbacks. Structures begin with their size, so that they can grow. */
#ifndef TASKSCOPE_DEVICE_H
#define TASKSCOPE_DEVICE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ts_device_session ts_device_session;

/* The key that all records of a buffer share. */
enum ts_device_key {
    TS_DEVICE_KEY_THREAD = 0,  /* the submitting thread, not the processing one */
    TS_DEVICE_KEY_LIST = 1,
    TS_DEVICE_KEY_QUEUE = 2,
    TS_DEVICE_KEY_CONTEXT = 3,
    TS_DEVICE_KEY_DEVICE = 4
};

enum ts_device_state {
    TS_DEVICE_DELIVERED = 0,
    TS_DEVICE_LOST = 1,      /* submitted, but no record will come: start and end are 0 */
    TS_DEVICE_LATE = 2,      /* the record of an operation that was reported as lost */
    TS_DEVICE_DUPLICATE = 3  /* a further record of an operation that has ended */
};

/* Bits of ts_device_record.anomalies; values are stored unchanged. */
#define TS_DEVICE_UNTIMED 1u
#define TS_DEVICE_END_BEFORE_START 2u
#define TS_DEVICE_OVERLAP 4u /* on an in-order queue: an error of the clock, which no order repairs */
#define TS_DEVICE_START_NOT_AFTER_SUBMIT 8u
#define TS_DEVICE_START_BEFORE_APPEND 16u
#define TS_DEVICE_START_GOES_BACK 32u
#define TS_DEVICE_UNANNOUNCED 64u
#define TS_DEVICE_AFTER_LOST 128u

#define TS_DEVICE_NO_LANE 0xffffffffu

typedef struct ts_device_record {
    uint32_t size; /* of this structure; the next record follows at once */
    uint32_t state;
    uint64_t queue, seq, id, thread, list, context, device;
    uint64_t append, submit, start, end; /* as given */
    uint32_t lane;                       /* of the queue: begins and ends of a lane never go back */
    uint32_t anomalies;
} ts_device_record;

/* Asks for an empty buffer, aligned to 8 bytes. If *buffer stays NULL, records are dropped and counted. */
typedef void (*ts_device_buffer_requested)(void *user, uint64_t key, unsigned char **buffer, size_t *size);
/* Returns a buffer with `used` bytes of records. */
typedef void (*ts_device_buffer_completed)(void *user, uint64_t key, unsigned char *buffer, size_t size, size_t used);

/* Behaviour when the limit of records held in memory is reached. */
enum ts_device_when_full {
    TS_DEVICE_SPILL = 0,        /* write them to disk; if that fails, as TS_DEVICE_DECLARE_LOST */
    TS_DEVICE_DECLARE_LOST = 1, /* declare the awaited operation lost */
    TS_DEVICE_BLOCK = 2         /* the caller delivers no records while ts_device_is_full; programs whose progress
                                 * depends on their own records can deadlock */
};

typedef struct ts_device_config {
    uint32_t size;          /* of this structure */
    uint32_t key;           /* enum ts_device_key */
    uint64_t held_records;  /* maximum held in memory; 0: a million */
    ts_device_buffer_requested requested;
    ts_device_buffer_completed completed;
    void *user;
    uint32_t when_full;          /* enum ts_device_when_full */
    uint32_t reserved;           /* 0 */
    const char *spill_directory; /* directory of an unnamed file; NULL: the directory of temporary files */
} ts_device_config;

typedef struct ts_device_counts {
    uint32_t size; /* of this structure */
    uint32_t reserved;
    /* appended = delivered + cancelled + lost, after ts_device_finish */
    uint64_t appended, delivered, cancelled, lost;
    uint64_t untimed, duplicates, late, overlaps, out_of_place, worst_late, held_peak;
} ts_device_counts;

/* Creates a session. Returns NULL for an invalid configuration. */
ts_device_session *ts_device_create(const ts_device_config *config);
/* Adds a queue and returns its number; its records carry `context` and `device`. */
uint64_t ts_device_add_queue(ts_device_session *session, int out_of_order, uint64_t context, uint64_t device);
/* Announces an operation before its submission, and returns its number in the queue. In recorded work, each
 * execution of each command is an operation. `append` is a time before which it cannot start; 0 if unknown. */
uint64_t ts_device_append(ts_device_session *session, uint64_t queue, uint64_t thread, uint64_t list, uint64_t append, uint64_t id);
/* Cancels an operation whose submission has failed. */
void ts_device_cancel(ts_device_session *session, uint64_t queue, uint64_t seq);
/* Completes an operation. A time of 0 is unknown. */
void ts_device_complete(ts_device_session *session, uint64_t queue, uint64_t seq, uint64_t submit, uint64_t start, uint64_t end);
/* Out-of-order queues: states that operations appended from now on start at `time` or later. */
void ts_device_no_append_before(ts_device_session *session, uint64_t queue, uint64_t time);
/* Out-of-order queues: states that the operation had not started at `time`. */
void ts_device_not_started_before(ts_device_session *session, uint64_t queue, uint64_t seq, uint64_t time);
/* Declares open operations below `before` lost, after a barrier and the vendor's flush. */
void ts_device_declare_lost(ts_device_session *session, uint64_t queue, uint64_t before);
/* Returns all buffers, full or not. Does not wait for devices. */
void ts_device_flush(ts_device_session *session);
/* Whether the limit of held records is reached. */
int ts_device_is_full(ts_device_session *session);
/* Number of records dropped without a buffer. */
uint64_t ts_device_dropped(ts_device_session *session);
/* Stores the counts of a queue; returns 0 for an unknown queue. */
int ts_device_count(ts_device_session *session, uint64_t queue, ts_device_counts *counts);
/* Ends the session: open operations are lost, all buffers are returned. */
void ts_device_finish(ts_device_session *session);
/* Frees the session. */
void ts_device_destroy(ts_device_session *session);

#ifdef __cplusplus
}
#endif
#endif
