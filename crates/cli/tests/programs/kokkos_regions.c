// Kernels of Kokkos on OpenMP: each functor has a region of its own, and one runs under two labels.
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

typedef void (*begin_t)(const char *, uint32_t, uint64_t *);
typedef void (*end_t)(uint64_t);

static begin_t begin;
static end_t end;

#define FUNCTOR(name) \
    __attribute__((noinline)) static void name(volatile double *data) { \
        _Pragma("omp parallel for schedule(dynamic)") for (int i = 0; i < 64; i++) data[i] += i; \
    }

FUNCTOR(first_functor)
FUNCTOR(second_functor)
FUNCTOR(functor_of_two_labels)
FUNCTOR(functor_without_kernel)

static void run(const char *label, void (*functor)(volatile double *), volatile double *data) {
    uint64_t kernel;
    begin(label, 0, &kernel);
    functor(data);
    end(kernel);
}

int main(void) {
    static double data[64];
    const char *path = getenv("KOKKOS_TOOLS_LIBS");
    void *library = path ? dlopen(path, RTLD_NOW | RTLD_GLOBAL) : NULL;
    if (!library)
        return 1;
    ((void (*)(int, uint64_t, uint32_t, void *))dlsym(library, "kokkosp_init_library"))(0, 20210623, 0, NULL);
    begin = (begin_t)dlsym(library, "kokkosp_begin_parallel_for");
    end = (end_t)dlsym(library, "kokkosp_end_parallel_for");
    // The first region of the process is that of a kernel.
    for (int step = 0; step < 5; step++) {
        run("advect", first_functor, data);
        run("residual", second_functor, data);
        run("left", functor_of_two_labels, data);
        run("right", functor_of_two_labels, data);
        functor_without_kernel(data);
    }
    return 0;
}
