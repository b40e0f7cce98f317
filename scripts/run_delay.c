/* Preloaded by scripts/busy-machine: at the exit of the program RUN_DELAY_PROGRAM, writes to the file RUN_DELAY_FILE how long
 * its threads were runnable without a CPU since it was loaded, in nanoseconds: the second number of their schedstat, of threads that have
 * ended, too, and without the recorder's own threads. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_ENDED = 65536 };

struct start {
    void *(*routine)(void *);
    void *argument;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t at_end;
static int counts;
static unsigned long long sum, before;
static int ended[MAX_ENDED], ended_count;

static int read_text(const char *task, const char *name, char *text, int size) {
    char path[320];
    snprintf(path, sizeof path, "/proc/self/task/%s/%s", task, name);
    FILE *file = fopen(path, "r");
    if (!file) return 0;
    text = fgets(text, size, file);
    fclose(file);
    return text != NULL;
}

static unsigned long long delay_of(const char *task) {
    char text[128];
    unsigned long long on_cpu, delay;
    if (read_text(task, "comm", text, sizeof text) && strncmp(text, "taskscope", 9) == 0) return 0;
    if (!read_text(task, "schedstat", text, sizeof text)) return 0;
    return sscanf(text, "%llu %llu", &on_cpu, &delay) == 2 ? delay : 0;
}

static void thread_ends(void *started) {
    char task[16];
    (void)started;
    snprintf(task, sizeof task, "%d", gettid());
    unsigned long long delay = delay_of(task);
    pthread_mutex_lock(&lock);
    sum += delay;
    if (ended_count < MAX_ENDED) ended[ended_count++] = gettid();
    pthread_mutex_unlock(&lock);
}

static void *run(void *argument) {
    struct start start = *(struct start *)argument;
    free(argument);
    pthread_setspecific(at_end, &counts);
    return start.routine(start.argument);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*routine)(void *), void *argument) {
    static int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (!next) *(void **)&next = dlsym(RTLD_NEXT, "pthread_create");
    struct start *start = counts ? malloc(sizeof *start) : NULL;
    if (!start) return next(thread, attributes, routine, argument);
    *start = (struct start){routine, argument};
    int failed = next(thread, attributes, run, start);
    if (failed) free(start);
    return failed;
}

static void write_run_delay(void) {
    pthread_mutex_lock(&lock);
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *task; tasks && (task = readdir(tasks));) {
        int has_ended = task->d_name[0] == '.';
        for (int row = 0; row < ended_count; row++) has_ended |= ended[row] == atoi(task->d_name);
        if (!has_ended) sum += delay_of(task->d_name);
    }
    if (tasks) closedir(tasks);
    FILE *out = fopen(getenv("RUN_DELAY_FILE"), "w");
    if (out) {
        fprintf(out, "%llu\n", sum - before);
        fclose(out);
    }
    pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void begin(void) {
    const char *program = getenv("RUN_DELAY_PROGRAM");
    if (!program || !getenv("RUN_DELAY_FILE") || strcmp(program, program_invocation_short_name) != 0) return;
    char task[16];
    snprintf(task, sizeof task, "%d", getpid());
    before = delay_of(task);
    counts = pthread_key_create(&at_end, thread_ends) == 0;
    atexit(write_run_delay);
}
