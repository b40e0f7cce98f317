/* A consumer of ordered device records that holds to Score-P's rule: time never decreases at a location.
 * The "vendor" here is as bad as vendors were seen to be: completions come in any order, on threads
 * other than the submitter's, twice, without times, or never.
 *
 *     cc consumer.c $(pkg-config --cflags --libs taskscope-device) -lpthread */
#include "taskscope_device.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { QUEUES = 3, THREADS = 2, PER_THREAD = 3000, LANES = 4096 };

static ts_device_session *session;
static uint64_t last_of_lane[QUEUES][LANES];
static uint64_t seen[4], kept;

static void requested(void *user, uint64_t key, unsigned char **buffer, size_t *size)
{
    (void) user;
    (void) key;
    *size = 100 * sizeof(ts_device_record);
    *buffer = malloc(*size);
}

static void completed(void *user, uint64_t key, unsigned char *buffer, size_t size, size_t used)
{
    (void) user;
    (void) size;
    for (size_t at = 0; at < used;) {
        ts_device_record record;
        memcpy(&record, buffer + at, sizeof record);
        at += record.size;
        seen[record.state]++;
        if (record.queue != key) {
            fprintf(stderr, "a record of queue %llu in the buffer of queue %llu\n",
                    (unsigned long long) record.queue, (unsigned long long) key);
            exit(1);
        }
        if (record.state != TS_DEVICE_DELIVERED || record.lane == TS_DEVICE_NO_LANE)
            continue;
        uint64_t *last = &last_of_lane[record.queue][record.lane];
        if (record.start < *last || record.end < record.start) {
            fprintf(stderr, "time decreases in lane %u of queue %llu\n", record.lane, (unsigned long long) record.queue);
            exit(1);
        }
        *last = record.end;
        kept++;
    }
    free(buffer);
}

struct operation {
    uint64_t queue, seq, start;
};

static struct operation operations[THREADS][PER_THREAD];
static pthread_barrier_t submitted;

static void *work(void *argument)
{
    long thread = (long) argument;
    for (int i = 0; i < PER_THREAD; i++) {
        uint64_t queue = (i + thread) % QUEUES;
        uint64_t seq = ts_device_append(session, queue, 100 + thread, 0, 10, i);
        operations[thread][i] = (struct operation) { queue, seq, 1000 + 100 * seq };
    }
    pthread_barrier_wait(&submitted);
    /* Each thread completes what the other one submitted, in a scattered order. */
    for (int n = 0; n < PER_THREAD; n++) {
        int i = (n * 1237) % PER_THREAD;
        struct operation *o = &operations[1 - thread][i];
        if (i % 500 == 7)
            continue; /* never comes */
        if (i % 500 == 8) {
            ts_device_cancel(session, o->queue, o->seq);
            continue;
        }
        uint64_t end = i % 500 == 9 ? 0 : o->start + 90; /* a forced flush knows no end */
        ts_device_complete(session, o->queue, o->seq, o->start - 5, o->start, end);
        if (i % 500 == 10)
            ts_device_complete(session, o->queue, o->seq, o->start - 5, o->start, end);
    }
    return NULL;
}

int main(void)
{
    ts_device_config config = {
        .size = sizeof config, .key = TS_DEVICE_KEY_QUEUE, .held_records = 256, .requested = requested, .completed = completed,
    };
    session = ts_device_create(&config);
    if (!session)
        return 1;
    for (int q = 0; q < QUEUES; q++)
        ts_device_add_queue(session, q > 0, 1, 1);
    pthread_barrier_init(&submitted, NULL, THREADS);
    pthread_t threads[THREADS];
    for (long t = 0; t < THREADS; t++)
        pthread_create(&threads[t], NULL, work, (void *) t);
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
    ts_device_flush(session);
    ts_device_finish(session);
    uint64_t appended = 0, delivered = 0, cancelled = 0, lost = 0, untimed = 0;
    for (int q = 0; q < QUEUES; q++) {
        ts_device_counts counts = { .size = sizeof counts };
        if (!ts_device_count(session, q, &counts) || counts.appended != counts.delivered + counts.cancelled + counts.lost)
            return 1;
        appended += counts.appended, delivered += counts.delivered, untimed += counts.untimed;
        cancelled += counts.cancelled, lost += counts.lost;
    }
    printf("appended %llu delivered %llu untimed %llu cancelled %llu lost %llu duplicates %llu dropped %llu\n",
           (unsigned long long) appended, (unsigned long long) delivered, (unsigned long long) untimed,
           (unsigned long long) cancelled, (unsigned long long) lost,
           (unsigned long long) seen[TS_DEVICE_DUPLICATE], (unsigned long long) ts_device_dropped(session));
    if (seen[TS_DEVICE_DELIVERED] != delivered || seen[TS_DEVICE_LOST] != lost || kept + untimed != delivered)
        return 1;
    ts_device_destroy(session);
    return 0;
}
