/* The functions that `abi_cost` calls, in the simplest form: CLOCK_MONOTONIC from the C library, events collected in 2 MiB
 * of memory per thread, written when those are full. What is collected is gone when the process is killed. */
#define _GNU_SOURCE
#include "../../tests/programs/ovni_abi.h"
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

enum { ROOM = 2 << 20 };

static char process[256];
static _Thread_local struct {
	int file;
	size_t used;
	uint8_t *events;
} own;

static void
write_out(void)
{
	for (size_t done = 0; done < own.used;) {
		ssize_t wrote = write(own.file, own.events + done, own.used - done);
		if (wrote < 0)
			abort();
		done += (size_t) wrote;
	}
	own.used = 0;
}

static uint8_t *
room(size_t bytes)
{
	if (own.used + bytes > ROOM)
		write_out();
	uint8_t *place = own.events + own.used;
	own.used += bytes;
	return place;
}

void
ovni_proc_init(int app, const char *loom, int pid)
{
	(void) app;
	const char *trace = getenv("OVNI_TRACEDIR");
	mkdir(trace, 0777);
	snprintf(process, sizeof(process), "%s/loom.%s", trace, loom);
	mkdir(process, 0777);
	snprintf(process, sizeof(process), "%s/loom.%s/proc.%d", trace, loom, pid);
	mkdir(process, 0777);
}

void
ovni_proc_fini(void)
{
}

void
ovni_thread_init(pid_t tid)
{
	char path[512];
	snprintf(path, sizeof(path), "%s/thread.%d", process, tid);
	mkdir(path, 0777);
	snprintf(path, sizeof(path), "%s/thread.%d/stream.obs", process, tid);
	own.file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
	own.events = malloc(ROOM);
	if (own.file < 0 || own.events == NULL)
		abort();
	own.used = 0;
}

void
ovni_thread_free(void)
{
	write_out();
	close(own.file);
	free(own.events);
}

uint64_t
ovni_clock_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t) t.tv_sec * 1000000000 + (uint64_t) t.tv_nsec;
}

void
ovni_ev_set_clock(struct ovni_ev *ev, uint64_t clock)
{
	ev->header.clock = clock;
}

uint64_t
ovni_ev_get_clock(const struct ovni_ev *ev)
{
	return ev->header.clock;
}

void
ovni_ev_set_mcv(struct ovni_ev *ev, const char *mcv)
{
	ev->header.model = (uint8_t) mcv[0];
	ev->header.category = (uint8_t) mcv[1];
	ev->header.value = (uint8_t) mcv[2];
}

int
ovni_payload_size(const struct ovni_ev *ev)
{
	if (ev->header.flags & OVNI_EV_JUMBO)
		return (int) ev->payload.jumbo.size + 4;
	int code = ev->header.flags & 15;
	return code == 0 ? 0 : code + 1;
}

void
ovni_payload_add(struct ovni_ev *ev, const uint8_t *bytes, int size)
{
	int used = ovni_payload_size(ev);
	if (size < 2 || used + size > (int) sizeof(ev->payload))
		abort();
	memcpy(ev->payload.u8 + used, bytes, (size_t) size);
	ev->header.flags = (uint8_t) ((ev->header.flags & 0xf0) | (used + size - 1));
}

int
ovni_ev_size(const struct ovni_ev *ev)
{
	return (int) sizeof(ev->header) + ovni_payload_size(ev);
}

void
ovni_ev_emit(struct ovni_ev *ev)
{
	size_t bytes = (size_t) ovni_ev_size(ev);
	memcpy(room(bytes), ev, bytes);
}

void
ovni_ev_jumbo_emit(struct ovni_ev *ev, const uint8_t *data, uint32_t size)
{
	ovni_payload_add(ev, (const uint8_t *) &size, sizeof(size));
	size_t bytes = (size_t) ovni_ev_size(ev);
	ev->header.flags |= OVNI_EV_JUMBO;
	uint8_t *place = room(bytes + size);
	memcpy(place, ev, bytes);
	memcpy(place + bytes, data, size);
}
