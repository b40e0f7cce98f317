/* Works for 0.3 s, then loads the library that its argument names, if it has one: from there on OpenMP is known. */
#include <dlfcn.h>
#include <stdio.h>
#include <time.h>
static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + 1e-9 * time.tv_nsec;
}
__attribute__((noinline)) static double early(double seconds)
{
    double end = now() + seconds, sum = 0;
    while (now() < end)
        sum += 1;
    return sum;
}
int main(int argc, char **argv)
{
    double sum = early(0.3);
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : 0;
    int (*plugin)(void) = library ? (int (*)(void))dlsym(library, "plugin") : 0;
    printf("%d\n", plugin ? plugin() : -1);
    return sum < 0;
}
