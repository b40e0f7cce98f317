/* Work of test programs: computing for a given time. */
#ifndef WORK_H
#define WORK_H

#include <stdint.h>
#include <time.h>

#include "virtual_time.h"

#define MS UINT64_C(1000000)

static inline uint64_t work_clock_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000 * MS + (uint64_t)time.tv_nsec;
}

/* Works for so many nanoseconds: of virtual time where the program runs in it, otherwise of the clock. As VIRTUAL_WORK, it is
   part of the calling function, so that samples are in the function that works. */
#define WORK_NS(ns)                                                                                                            \
    do {                                                                                                                       \
        uint64_t work_ns_ = (uint64_t)(ns);                                                                                    \
        if (IS_VIRTUAL_TIME) VIRTUAL_WORK(work_ns_);                                                                           \
        else {                                                                                                                 \
            uint64_t until_ = work_clock_ns() + work_ns_;                                                                      \
            /* Far longer than the clock takes, so that hardly a sample is in that. */                                         \
            while (work_clock_ns() < until_)                                                                                   \
                for (volatile int round_ = 0; round_ < 1000; round_++) {}                                                      \
        }                                                                                                                      \
    } while (0)

#endif
