/* Preloaded by scripts/busy-machine: at the exit of the program RUN_DELAY_PROGRAM, writes to the file RUN_DELAY_FILE a line
 * for each of its threads, also ended ones, but not the recorder's own: thread id, and how many nanoseconds it was runnable without a CPU since
 * the program was loaded (the second number of its schedstat). */
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
static unsigned long long before;
static struct {
    int tid;
    unsigned long long delay;
} ended[MAX_ENDED];
static int ended_count;

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
    if (ended_count < MAX_ENDED) {
        ended[ended_count].tid = gettid();
        ended[ended_count++].delay = delay;
    }
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
    FILE *out = fopen(getenv("RUN_DELAY_FILE"), "w");
    if (!out) return;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *task; tasks && (task = readdir(tasks));) {
        int has_ended = task->d_name[0] == '.';
        for (int row = 0; row < ended_count; row++) has_ended |= ended[row].tid == atoi(task->d_name);
        int is_main = atoi(task->d_name) == getpid();
        if (!has_ended) fprintf(out, "%s %llu\n", task->d_name, delay_of(task->d_name) - (is_main ? before : 0));
    }
    if (tasks) closedir(tasks);
    for (int row = 0; row < ended_count; row++) fprintf(out, "%d %llu\n", ended[row].tid, ended[row].delay);
    fclose(out);
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
