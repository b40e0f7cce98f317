// A guard takes a lock for two functions: one holds it, the other waits.
#include <omp.h>
#include <unistd.h>

#include "virtual_time.h"
struct Guard {
  omp_lock_t *lock;
  __attribute__((always_inline)) explicit Guard(omp_lock_t *taken) : lock(taken) { omp_set_lock(lock); }
  ~Guard() { omp_unset_lock(lock); }
};
static omp_lock_t own;
static volatile int held;
__attribute__((noinline)) static void rebuild() { Guard guard(&own); held = 1; usleep(20000); }
__attribute__((noinline)) static void look_up() { while (!held) usleep(100); Guard guard(&own); }
int main() {
  omp_init_lock(&own);
#pragma omp parallel num_threads(2)
  if (omp_get_thread_num() == 0) rebuild(); else look_up();
}
