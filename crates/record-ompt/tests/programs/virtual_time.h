/* Time that passes only where a program says so: what tests measure is exact on any machine, however busy.

   `virtual_time.c` is preloaded behind the recorder. It has its own clock_gettime, usleep and timers: the clock stands still
   until every thread either works (`virtual_work`), sleeps, or waits in the runtime; then it goes on to the next moment
   at which one has worked or slept enough or is to be sampled. Programs that are not run in virtual time work really. */
#include <stdint.h>
#include <time.h>

/* Works for so many nanoseconds of virtual time. */
extern void virtual_work(uint64_t ns) __attribute__((weak));

/* Every reading of a clock takes so many nanoseconds of virtual time from now on, on the calling thread: what asks for the time,
   as calls of the runtime and the recorder's callbacks do, is where the thread is sampled. */
extern void virtual_readings_take(uint64_t ns) __attribute__((weak));
