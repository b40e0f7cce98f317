/* Loads two libraries one after the other, at one address if the system gives it again. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv) {
    /* Each argument is a library; its function `run` takes how many tasks to make. */
    for (int i = 1; i < argc; i++) {
        void *library = dlopen(argv[i], RTLD_NOW);
        if (!library) {
            puts(dlerror());
            return 1;
        }
        void (*run)(int) = (void (*)(int))dlsym(library, "run");
        printf("%p\n", (void *)run);
        fflush(stdout);
        run(i);
        dlclose(library);
    }
    return 0;
}
