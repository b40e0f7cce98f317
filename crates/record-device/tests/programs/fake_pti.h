/* A stand-in for PTI: the program that includes it plays the driver. */
#ifndef FAKE_PTI_H
#define FAKE_PTI_H
#include <stdint.h>

uint64_t fake_now(void);
/* As a release of PTI without the callback interface. */
void fake_without_callbacks(void);
/* An operation is appended by the calling thread; returns when. Queue NULL: a recorded command list. */
uint64_t fake_append(void *list, void *queue, uint64_t id, const char *name, int is_kernel, uint32_t result);
/* Records, into the buffer of thread `to`. */
void fake_kernel(int to, void *queue, uint64_t id, const char *name, uint32_t thread, uint64_t append, uint64_t submit, uint64_t start, uint64_t end);
void fake_copy(int to, void *queue, uint64_t id, int to_device, uint32_t thread, uint64_t append, uint64_t start, uint64_t end);
void fake_fill(int to, void *queue, uint64_t id, uint32_t thread, uint64_t append, uint64_t start, uint64_t end);
void fake_call(int to, uint32_t call, uint32_t thread, uint32_t correlation, uint64_t start, uint64_t end);
void fake_overhead(int to, uint32_t thread, uint64_t start, uint64_t end);
void fake_wait(int to, void *queue, uint32_t thread, uint64_t start, uint64_t end);
/* Hands a buffer over, and again. */
void fake_deliver(int index, int again);
/* Whether flushes do nothing. */
void fake_no_flush(int value);
#endif
