/* Preloaded: interrupts its own process at a known call, so that a test needs no luck.

   INTERRUPT_SIGNAL   the signal's number
   INTERRUPT_CALL     `open` or `rename`
   INTERRUPT_PATH     part of the path that is opened or renamed to
   INTERRUPT_COUNT    which of these calls, from 1; the signal is sent when the call is over
   INTERRUPT_STAYS    set: the calling thread does not return, so the work cannot end before the signal is noticed */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int count;

static void called(const char *call, const char *path) {
    const char *wanted = getenv("INTERRUPT_CALL"), *part = getenv("INTERRUPT_PATH");
    if (!wanted || !part || !path || strcmp(wanted, call) || !strstr(path, part)) return;
    if (__atomic_add_fetch(&count, 1, __ATOMIC_RELAXED) != atoi(getenv("INTERRUPT_COUNT"))) return;
    raise(atoi(getenv("INTERRUPT_SIGNAL")));
    while (getenv("INTERRUPT_STAYS")) pause();
}

static int opened(const char *name, const char *path, int flags, int mode) {
    int (*next)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, name);
    int file = next(path, flags, mode);
    called("open", path);
    return file;
}

static int opened_at(const char *name, int directory, const char *path, int flags, int mode) {
    int (*next)(int, const char *, int, ...) = (int (*)(int, const char *, int, ...))dlsym(RTLD_NEXT, name);
    int file = next(directory, path, flags, mode);
    called("open", path);
    return file;
}

static int mode_of(int flags, va_list list) { return flags & (O_CREAT | __O_TMPFILE) ? va_arg(list, int) : 0; }

#define WITH_MODE(call)                                                                                                      \
    va_list list;                                                                                                            \
    va_start(list, flags);                                                                                                   \
    int mode = mode_of(flags, list);                                                                                         \
    va_end(list);                                                                                                            \
    return call

int open(const char *path, int flags, ...) { WITH_MODE(opened("open", path, flags, mode)); }
int open64(const char *path, int flags, ...) { WITH_MODE(opened("open64", path, flags, mode)); }
int openat(int directory, const char *path, int flags, ...) { WITH_MODE(opened_at("openat", directory, path, flags, mode)); }
int openat64(int directory, const char *path, int flags, ...) { WITH_MODE(opened_at("openat64", directory, path, flags, mode)); }

int rename(const char *from, const char *to) {
    int (*next)(const char *, const char *) = (int (*)(const char *, const char *))dlsym(RTLD_NEXT, "rename");
    int result = next(from, to);
    called("rename", to);
    return result;
}

int renameat(int directory, const char *from, int other, const char *to) {
    int (*next)(int, const char *, int, const char *) =
        (int (*)(int, const char *, int, const char *))dlsym(RTLD_NEXT, "renameat");
    int result = next(directory, from, other, to);
    called("rename", to);
    return result;
}
