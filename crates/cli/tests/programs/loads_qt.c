/* Loads a library late, and lasts until it has been inspected. */
#include <dlfcn.h>
#include <unistd.h>

int main(void) {
    void *qt = dlopen("./libQt6Core.so.6", RTLD_NOW);
    sleep(1);
    return qt == 0;
}
