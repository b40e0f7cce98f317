/* Programs that never end, and two that only take long: each is ended by a signal after the time in argv[2], milliseconds. */
#include <omp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static omp_lock_t locks[3];
static omp_nest_lock_t nested[3];
static volatile double sum;

/* Each thread holds a lock and wants that of the next one. */
static void circle(void) {
#pragma omp parallel num_threads(3)
  {
    int me = omp_get_thread_num();
    omp_set_lock(&locks[me]);
#pragma omp barrier
    omp_set_lock(&locks[(me + 1) % 3]);
  }
}

static void nested_locks(void) {
#pragma omp parallel num_threads(2)
  {
    int me = omp_get_thread_num();
    omp_set_nest_lock(&nested[me]);
    omp_set_nest_lock(&nested[me]);
#pragma omp barrier
    omp_set_nest_lock(&nested[1 - me]);
  }
}

static void own_lock(void) {
#pragma omp parallel num_threads(2)
#pragma omp single
  {
    omp_set_lock(&locks[0]);
    omp_set_lock(&locks[0]);
  }
}

static void own_critical(int again) {
#pragma omp critical
  if (again)
    own_critical(0);
}

/* A member waits in a barrier while it holds the lock that another one wants before it comes there. */
static void barrier_in_lock(void) {
  static volatile int is_held;
#pragma omp parallel num_threads(2)
  {
    if (omp_get_thread_num() == 0) {
      omp_set_lock(&locks[0]);
      is_held = 1;
    } else {
      while (!is_held)
        usleep(1000);
      omp_set_lock(&locks[0]);
    }
#pragma omp barrier
    omp_unset_lock(&locks[0]);
  }
}

/* One member sleeps instead of coming to the barrier. */
static void member(void) {
#pragma omp parallel num_threads(3)
  {
    if (omp_get_thread_num() == 2)
      pause();
#pragma omp barrier
  }
}

/* A thread ends while it holds a lock. */
static void exited(void) {
  static volatile int is_held;
#pragma omp parallel num_threads(2)
  {
    if (omp_get_thread_num() == 1) {
      omp_set_lock(&locks[0]);
      is_held = 1;
      pthread_exit(NULL);
    }
    while (!is_held)
      usleep(1000);
    omp_set_lock(&locks[0]);
  }
}

/* Two barriers of different kinds: one thread leaves the region, the other one waits inside. */
static void mismatch(void) {
#pragma omp parallel num_threads(2)
  if (omp_get_thread_num() == 0) {
#pragma omp barrier
  }
}

/* The event of a detached task never comes, so the task that depends on it never starts. */
static void event(void) {
  int x = 0;
#pragma omp parallel num_threads(2)
#pragma omp single
  {
    omp_event_handle_t handle;
#pragma omp task depend(out : x) detach(handle)
    x = 1;
#pragma omp task depend(in : x)
    sum += x;
#pragma omp taskwait
  }
}

/* Long work of one member, for which the others wait. */
static void computes(void) {
#pragma omp parallel num_threads(2)
  {
    if (omp_get_thread_num() == 1)
      for (;;)
        sum += 1;
#pragma omp barrier
  }
}

/* Ordinary work that is ended in its midst. */
static void works(void) {
  for (;;)
#pragma omp parallel num_threads(2)
  {
#pragma omp for schedule(dynamic)
    for (int i = 0; i < 64; i++)
      for (int k = 0; k < 2000 * (i % 4 + 1); k++)
#pragma omp atomic
        sum += k;
    omp_set_lock(&locks[0]);
    sum += 1;
    omp_unset_lock(&locks[0]);
  }
}

int main(int count, char **arguments) {
  if (count < 3)
    return 2;
  long ms = atol(arguments[2]);
  struct itimerval timer = {{0, 0}, {ms / 1000, ms % 1000 * 1000}};
  for (int i = 0; i < 3; i++) {
    omp_init_lock(&locks[i]);
    omp_init_nest_lock(&nested[i]);
  }
  setitimer(ITIMER_REAL, &timer, NULL);
  static const struct {
    const char *name;
    void (*run)(void);
  } modes[] = {{"circle", circle},     {"nested", nested_locks}, {"own-lock", own_lock}, {"member", member},
               {"exited", exited},     {"mismatch", mismatch},   {"event", event},       {"computes", computes},
               {"works", works},       {"barrier-in-lock", barrier_in_lock}};
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
    if (!strcmp(modes[i].name, arguments[1]))
      modes[i].run();
  if (!strcmp(arguments[1], "own-critical"))
#pragma omp parallel num_threads(2)
    own_critical(1);
  return 0;
}
