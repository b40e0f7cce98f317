/* Preloaded by scripts/busy-machine: at the exit of the program RUN_DELAY_PROGRAM, writes to the file RUN_DELAY_FILE how long
 * its threads, which all live then, were runnable without a CPU, in nanoseconds: the second number of their schedstat. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void write_run_delay(void) {
    unsigned long long sum = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *task; tasks && (task = readdir(tasks));) {
        char path[320];
        unsigned long long on_cpu, delay;
        snprintf(path, sizeof path, "/proc/self/task/%s/schedstat", task->d_name);
        FILE *file = task->d_name[0] == '.' ? NULL : fopen(path, "r");
        if (!file) continue;
        if (fscanf(file, "%llu %llu", &on_cpu, &delay) == 2) sum += delay;
        fclose(file);
    }
    if (tasks) closedir(tasks);
    FILE *out = fopen(getenv("RUN_DELAY_FILE"), "w");
    if (!out) return;
    fprintf(out, "%llu\n", sum);
    fclose(out);
}

__attribute__((constructor)) static void begin(void) {
    const char *program = getenv("RUN_DELAY_PROGRAM");
    if (program && getenv("RUN_DELAY_FILE") && strcmp(program, program_invocation_short_name) == 0) atexit(write_run_delay);
}
