// Calls the library that KOKKOS_TOOLS_LIBS names as Kokkos does: two threads run kernels, nested in regions.
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    char name[64];
} space_t;

typedef void (*begin_t)(const char *, uint32_t, uint64_t *);
typedef void (*end_t)(uint64_t);
typedef void (*label_t)(const char *);
typedef void (*nothing_t)(void);
typedef void (*memory_t)(space_t, const char *, const void *, uint64_t);
typedef void (*copy_t)(space_t, const char *, const void *, space_t, const char *, const void *, uint64_t);

static void *library;

static void *function(const char *name) {
    void *found = dlsym(library, name);
    if (!found) {
        fprintf(stderr, "no %s\n", name);
        exit(1);
    }
    return found;
}

static begin_t begin_for, begin_reduce, begin_scan, begin_fence;
static end_t end_for, end_reduce, end_scan, end_fence;
static label_t push, event;
static nothing_t pop, end_copy;

// Each label is at the same address, as those of temporary strings are.
static uint64_t begin(begin_t function, const char *label) {
    static __thread char text[64];
    uint64_t kernel = 0;
    strncpy(text, label, sizeof text - 1);
    function(text, 0, &kernel);
    return kernel;
}

static void *steps(void *unused) {
    for (int step = 0; step < 5; step++) {
        push("time step");
        uint64_t outer = begin(begin_for, "advect");
        uint64_t inner = begin(begin_reduce, "residual");
        end_reduce(inner);
        end_for(outer);
        end_scan(begin(begin_scan, "advect"));
        end_fence(begin(begin_fence, "end of step"));
        pop();
    }
    return unused;
}

int main(void) {
    const char *path = getenv("KOKKOS_TOOLS_LIBS");
    library = path ? dlopen(path, RTLD_NOW | RTLD_GLOBAL) : NULL;
    if (!library) {
        puts("no tool");
        return 0;
    }
    unsigned char settings[256] = {1};
    ((void (*)(int, uint64_t, uint32_t, void *))function("kokkosp_init_library"))(0, 20210623, 0, NULL);
    ((void (*)(uint32_t, void *))function("kokkosp_request_tool_settings"))(1, settings);
    begin_for = (begin_t)function("kokkosp_begin_parallel_for");
    begin_reduce = (begin_t)function("kokkosp_begin_parallel_reduce");
    begin_scan = (begin_t)function("kokkosp_begin_parallel_scan");
    begin_fence = (begin_t)function("kokkosp_begin_fence");
    end_for = (end_t)function("kokkosp_end_parallel_for");
    end_reduce = (end_t)function("kokkosp_end_parallel_reduce");
    end_scan = (end_t)function("kokkosp_end_parallel_scan");
    end_fence = (end_t)function("kokkosp_end_fence");
    push = (label_t)function("kokkosp_push_profile_region");
    pop = (nothing_t)function("kokkosp_pop_profile_region");
    event = (label_t)function("kokkosp_profile_event");
    end_copy = (nothing_t)function("kokkosp_end_deep_copy");
    memory_t allocate = (memory_t)function("kokkosp_allocate_data"), deallocate = (memory_t)function("kokkosp_deallocate_data");
    copy_t begin_copy = (copy_t)function("kokkosp_begin_deep_copy");

    space_t host = {"Host"}, full;
    memset(full.name, 'x', sizeof full.name);
    allocate(host, "velocity", settings, 4096);
    allocate(full, "pressure", settings, 100);
    pthread_t other;
    pthread_create(&other, NULL, steps, NULL);
    steps(NULL);
    pthread_join(other, NULL);
    begin_copy(full, "pressure", settings, host, "velocity", settings, 64);
    end_copy();
    uint32_t sections[2] = {0};
    for (int i = 0; i < 2; i++) {
        ((void (*)(const char *, uint32_t *))function("kokkosp_create_profile_section"))("output", &sections[i]);
        ((void (*)(uint32_t))function("kokkosp_start_profile_section"))(sections[i]);
        ((void (*)(uint32_t))function("kokkosp_stop_profile_section"))(sections[i]);
    }
    ((void (*)(uint32_t))function("kokkosp_stop_profile_section"))(77);
    event("done");
    deallocate(host, "velocity", settings, 4096);
    // Ends without begins change nothing.
    pop();
    end_copy();
    end_for(1 << 20);
    // A label that is longer than a name may be.
    char *label = malloc(100000);
    memset(label, 'l', 99999);
    label[99999] = 0;
    uint64_t kernel;
    begin_for(label, 0, &kernel);
    end_for(kernel);
    free(label);
    printf("%s\n", sections[0] && sections[0] == sections[1] && !settings[0] ? "recorded" : "wrong");
}
