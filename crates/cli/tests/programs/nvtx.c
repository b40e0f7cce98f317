// A program with NVTX: the tables of functions, as the public header lays them out, which the library that
// NVTX_INJECTION64_PATH names fills.
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <wchar.h>

typedef struct {
    uint16_t version, size;
    uint32_t category;
    int32_t colour_type;
    uint32_t colour;
    int32_t payload_type, reserved;
    union {
        uint64_t integer;
        double real;
        float small;
    } payload;
    int32_t message_type;
    const void *message;
} attributes_t;

enum { UNSIGNED = 1, REAL = 3, SMALL = 6 };
enum { ASCII = 1, UNICODE = 2, REGISTERED = 3 };
enum { CORE = 1, CORE2 = 5 };

// The places are those of the header's function pointers.
static void *core[16], *core2[16];
static void **core_table[17], **core2_table[17];

static int functions_of(uint32_t module, void ****table, unsigned *count) {
    switch (module) {
    case CORE: *table = core_table; break;
    case CORE2: *table = core2_table; break;
    default: return 0;
    }
    *count = 16;
    return 1;
}

static struct {
    size_t size;
    int (*functions)(uint32_t, void ****, unsigned *);
} callbacks = {sizeof callbacks, functions_of};

static const void *table_of(uint32_t number) {
    return number == 1 ? &callbacks : NULL;
}

#define CALL(table, number, result, ...) ((result(*)(__VA_ARGS__))table[number])
#define MARK CALL(core, 2, void, const char *)
#define RANGE_START CALL(core, 5, uint64_t, const char *)
#define RANGE_END CALL(core, 7, void, uint64_t)
#define PUSH CALL(core, 9, int, const char *)
#define PUSH_WIDE CALL(core, 10, int, const wchar_t *)
#define POP CALL(core, 11, int, void)
#define NAME_CATEGORY CALL(core, 12, void, uint32_t, const char *)
#define NAME_THREAD CALL(core, 14, void, uint32_t, const char *)
#define DOMAIN_MARK CALL(core2, 1, void, void *, const attributes_t *)
#define DOMAIN_PUSH CALL(core2, 4, int, void *, const attributes_t *)
#define DOMAIN_POP CALL(core2, 5, int, void *)
#define DOMAIN_CATEGORY CALL(core2, 8, void, void *, uint32_t, const char *)
#define REGISTER CALL(core2, 10, void *, void *, const char *)
#define DOMAIN_CREATE CALL(core2, 12, void *, const char *)

static uint64_t handed_over;
static int levels_are_right = 1;

static void expect(int level, int expected) {
    levels_are_right &= level == expected;
}

static void *worker(void *unused) {
    for (int i = 0; i < 5; i++) {
        expect(PUSH("step"), 0);
        expect(PUSH("kernel"), 1);
        expect(POP(), 1);
        expect(POP(), 0);
    }
    RANGE_END(handed_over);
    return unused;
}

int main(void) {
    for (int i = 1; i < 16; i++) {
        core_table[i] = &core[i];
        core2_table[i] = &core2[i];
    }
    const char *path = getenv("NVTX_INJECTION64_PATH");
    void *library = path ? dlopen(path, RTLD_LAZY) : NULL;
    int (*initialize)(const void *(*)(uint32_t)) = library ? dlsym(library, "InitializeInjectionNvtx2") : NULL;
    if (!initialize || !initialize(table_of)) {
        puts("not recorded");
        return 0;
    }
    // Functions that a tool leaves alone do nothing.
    if (core[0] || core2[6]) {
        puts("wrong");
        return 1;
    }
    NAME_THREAD(syscall(SYS_gettid), "steering of ranges");
    handed_over = RANGE_START("handed over");
    pthread_t other;
    pthread_create(&other, NULL, worker, NULL);
    pthread_join(other, NULL);
    uint64_t a = RANGE_START("overlapping"), b = RANGE_START("overlapping");
    RANGE_END(a);
    RANGE_END(b);
    RANGE_END(77);

    NAME_CATEGORY(3, "input");
    void *domain = DOMAIN_CREATE("solver");
    DOMAIN_CATEGORY(domain, 3, "assembly");
    void *text = REGISTER(domain, "matrix");
    attributes_t of_domain = {3, sizeof of_domain, 3, 0, 0, 0, 0, {0}, REGISTERED, text};
    expect(DOMAIN_PUSH(domain, &of_domain), 0);
    // Another domain has levels of its own.
    expect(PUSH_WIDE(L"Δt"), 0);
    expect(POP(), 0);
    expect(DOMAIN_POP(domain), 0);
    expect(POP() < 0, 1);
    attributes_t mark = {3, sizeof mark, 9, 0, 0, UNSIGNED, 0, {.integer = 42}, ASCII, "bytes"};
    DOMAIN_MARK(domain, &mark);
    mark.payload_type = SMALL;
    mark.payload.small = 2.6f;
    DOMAIN_MARK(NULL, &mark);
    // An older structure, which ends before the payload.
    attributes_t old = {1, offsetof(attributes_t, payload), 0, 0, 0, 0, 0, {0}, ASCII, "never read"};
    DOMAIN_MARK(NULL, &old);
    DOMAIN_MARK(NULL, NULL);
    MARK("done");
    puts(levels_are_right && REGISTER(domain, "matrix") == text ? "recorded" : "wrong");
}
