/* Loads a library that uses OpenMP, runs it, and unloads it, twice. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv) {
    for (int round = 0; argc > 1 && round < 2; round++) {
        void *plugin = dlopen(argv[1], RTLD_NOW);
        if (!plugin) {
            fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
        int (*run)(int) = (int (*)(int))dlsym(plugin, "run_plugin");
        printf("%d\n", run(20));
        dlclose(plugin);
    }
    return 0;
}
