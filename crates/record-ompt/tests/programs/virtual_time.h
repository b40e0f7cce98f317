/* Time that passes only where a program says so: what tests measure is exact on any machine, however busy.

   `virtual_time.c` is a library with its own clock_gettime, usleep and timers, behind the recorder: the clock stands still until
   every thread either works (`VIRTUAL_WORK`), sleeps, or waits in the runtime; then it goes on to the next moment at which one
   has worked or slept enough or is to be sampled. Programs without that library work really. */
#ifndef VIRTUAL_TIME_H
#define VIRTUAL_TIME_H

#include <linux/futex.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A thread waits for the clock until the word that is returned is not 0. */
extern uint32_t *virtual_wait_begins(uint64_t ns) __attribute__((weak));
extern void virtual_wait_is_over(uint32_t *goes_on) __attribute__((weak));

/* Every reading of a clock takes so many nanoseconds of virtual time from now on, on the calling thread: what asks for the time,
   as calls of the runtime and the recorder's callbacks do, is where the thread is sampled. */
extern void virtual_readings_take(uint64_t ns) __attribute__((weak));

#ifdef __cplusplus
}
#endif

#define VIRTUAL_FUTEX(word, operation, value)                                                                                   \
    do {                                                                                                                        \
        register long timeout_ __asm__("r10") = 0;                                                                              \
        long result_;                                                                                                           \
        __asm__ volatile("syscall"                                                                                              \
                         : "=a"(result_)                                                                                        \
                         : "a"((long)SYS_futex), "D"(word), "S"((long)((operation) | FUTEX_PRIVATE_FLAG)), "d"((long)(value)),  \
                           "r"(timeout_)                                                                                        \
                         : "rcx", "r11", "memory");                                                                             \
    } while (0)

#define IS_VIRTUAL_TIME (virtual_wait_begins != NULL)

/* Works for so many nanoseconds of virtual time. Not by a function, so that samples are in the one that works; nor by one of
   the C library, which the recorder may have its own of. */
#define VIRTUAL_WORK(ns)                                                                                                        \
    do {                                                                                                                        \
        uint32_t *goes_on_ = virtual_wait_begins(ns);                                                                           \
        while (!*(volatile uint32_t *)goes_on_) VIRTUAL_FUTEX(goes_on_, FUTEX_WAIT, 0);                                         \
        virtual_wait_is_over(goes_on_);                                                                                         \
    } while (0)

#endif
