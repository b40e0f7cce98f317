/* Names its thread late, and is killed when the name is in the trace, or after a minute. */
#define _GNU_SOURCE
#include <glob.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int is_stored(void) {
    static char text[1 << 16];
    glob_t found;
    int stored = 0;
    if (glob("trace/*/*/os-time/taskscope.json", 0, NULL, &found))
        return 0;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        FILE *file = fopen(found.gl_pathv[i], "r");
        if (!file)
            continue;
        text[fread(text, 1, sizeof text - 1, file)] = 0;
        stored |= strstr(text, "late-name") != NULL;
        fclose(file);
    }
    globfree(&found);
    return stored;
}

int main(void) {
#pragma omp parallel num_threads(2)
    usleep(1000);
    pthread_setname_np(pthread_self(), "late-name");
    for (int i = 0; i < 6000 && !is_stored(); i++)
        usleep(10000);
    kill(getpid(), SIGKILL);
    return 0;
}
