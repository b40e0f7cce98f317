/* Loads the library that its argument names. */
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : 0;
    int (*plugin)(void) = library ? (int (*)(void))dlsym(library, "plugin") : 0;
    printf("%d\n", plugin ? plugin() : -1);
    return 0;
}
