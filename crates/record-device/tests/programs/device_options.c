/* What happens when more records wait than may be held: the first operation of a queue ends last. */
#include "taskscope_device.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPERATIONS = 20000 };

static unsigned long long states[4];

static void
requested(void *user, uint64_t key, unsigned char **buffer, size_t *size)
{
	(void) user;
	(void) key;
	*size = 64 * sizeof(ts_device_record);
	*buffer = (unsigned char *) malloc(*size);
}

static void
completed(void *user, uint64_t key, unsigned char *buffer, size_t size, size_t used)
{
	(void) user;
	(void) key;
	(void) size;
	for (size_t at = 0; at < used;) {
		ts_device_record record;
		memcpy(&record, buffer + at, sizeof record);
		at += record.size;
		states[record.state]++;
	}
	free(buffer);
}

static int
run(const char *name, uint32_t size, uint32_t when_full)
{
	ts_device_config config;
	memset(&config, 0, sizeof config);
	config.size = size;
	config.held_records = 512;
	config.requested = requested;
	config.completed = completed;
	config.when_full = when_full;
	config.spill_directory = "/tmp";
	ts_device_session *session = ts_device_create(&config);
	if (session == NULL)
		return 1;
	memset(states, 0, sizeof states);
	uint64_t queue = ts_device_add_queue(session, 0, 1, 1);
	int first_is_open = 1;
	for (uint64_t seq = 0; seq < OPERATIONS; seq++) {
		ts_device_append(session, queue, 1, 0, 10 * seq + 1, seq);
		/* A full queue that blocks: the operation that all wait for completes. */
		if (first_is_open && when_full == TS_DEVICE_BLOCK && ts_device_is_full(session)) {
			ts_device_complete(session, queue, 0, 0, 2, 5);
			first_is_open = 0;
		}
		if (seq > 0)
			ts_device_complete(session, queue, seq, 0, 10 * seq + 2, 10 * seq + 5);
	}
	if (first_is_open)
		ts_device_complete(session, queue, 0, 0, 2, 5);
	ts_device_finish(session);
	ts_device_counts counts;
	memset(&counts, 0, sizeof counts);
	counts.size = sizeof counts;
	if (!ts_device_count(session, queue, &counts) || counts.appended != OPERATIONS)
		return 1;
	if (counts.appended != counts.delivered + counts.cancelled + counts.lost || states[TS_DEVICE_DELIVERED] != counts.delivered)
		return 1;
	printf("%s: held %llu delivered %llu lost %llu late %llu\n", name, (unsigned long long) counts.held_peak,
		(unsigned long long) counts.delivered, (unsigned long long) counts.lost, states[TS_DEVICE_LATE]);
	ts_device_destroy(session);
	return 0;
}

int
main(void)
{
	ts_device_config wrong;
	memset(&wrong, 0, sizeof wrong);
	wrong.size = sizeof wrong;
	wrong.requested = requested;
	wrong.completed = completed;
	wrong.when_full = 3;
	if (ts_device_create(&wrong) != NULL || ts_device_create(NULL) != NULL)
		return 1;
	wrong.when_full = 0;
	wrong.size = 8;
	if (ts_device_create(&wrong) != NULL)
		return 1;
	/* A tool that was built when the struct was shorter: what follows is not read. */
	uint32_t before = (uint32_t) offsetof(ts_device_config, when_full);
	return run("old", before, 77) || run("spill", sizeof wrong, TS_DEVICE_SPILL) ||
		run("declare lost", sizeof wrong, TS_DEVICE_DECLARE_LOST) || run("block", sizeof wrong, TS_DEVICE_BLOCK);
}
