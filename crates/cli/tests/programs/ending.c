/* Ends in the way that is named, with a library of `ending_library.c` linked, and one loaded and closed. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void called(void);

int main(int count, char **arguments) {
    const char *way = count > 1 ? arguments[1] : "";
    atexit(called);
    called();
    if (!strcmp(way, "close")) {
        void *library = dlopen(arguments[2], RTLD_NOW);
        if (!library || dlclose(library)) return 1;
    }
    if (!strcmp(way, "_exit")) _exit(0);
    if (!strcmp(way, "quick_exit")) quick_exit(0);
    return 0;
}
