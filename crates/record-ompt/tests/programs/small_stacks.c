// Fibers on stacks of a few kilobytes, beneath which nothing may change, for some hundred samples.
// Usage: small_stacks BYTES (none | given | BYTES_OF_ALTERNATE) [threads]
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>

enum { REGION = 1 << 16, MARK = 0x5c };
static size_t stack_bytes;
static const char *alternate;

struct fiber {
    ucontext_t from, to;
    volatile uint64_t sum;
};
static __thread struct fiber *current;

static void spin(void) {
    struct timespec cpu;
    uint64_t sum = 1;
    do {
        for (int i = 0; i < 1000; i++)
            sum = sum * 6364136223846793005u + 1;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
    } while (cpu.tv_nsec + cpu.tv_sec * 1000000000L < 150000000L);
    current->sum = sum;
}

static int is_as_given(const stack_t *expected) {
    stack_t seen;
    sigaltstack(NULL, &seen);
    return seen.ss_flags == expected->ss_flags
        && (expected->ss_flags == SS_DISABLE || (seen.ss_sp == expected->ss_sp && seen.ss_size == expected->ss_size));
}

static void *run(void *changed) {
    stack_t given = {.ss_flags = SS_DISABLE};
    *(long *)changed = !is_as_given(&given);
    if (strcmp(alternate, "none") != 0) {
        given.ss_size = strcmp(alternate, "given") == 0 ? 1 << 16 : (size_t)atoi(alternate);
        given.ss_sp = malloc(given.ss_size);
        given.ss_flags = 0;
        if (sigaltstack(&given, NULL) != 0)
            *(long *)changed += 1 << 20;
    }
    unsigned char *low = mmap(NULL, REGION, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(low, MARK, REGION);
    struct fiber fiber = {.sum = 0};
    current = &fiber;
    getcontext(&fiber.to);
    fiber.to.uc_stack.ss_sp = low + REGION - stack_bytes;
    fiber.to.uc_stack.ss_size = stack_bytes;
    fiber.to.uc_link = &fiber.from;
    makecontext(&fiber.to, spin, 0);
    swapcontext(&fiber.from, &fiber.to);
    for (size_t at = 0; at < REGION - stack_bytes; at++)
        *(long *)changed += low[at] != MARK;
    *(long *)changed += !is_as_given(&given);
    return NULL;
}

int main(int count, char **arguments) {
    stack_bytes = atoi(arguments[1]);
    alternate = arguments[2];
    long changed[3] = {0, 0, 0};
    pthread_t threads[3];
    int others = count > 3 ? 2 : 0;
    for (int i = 0; i < others; i++)
        pthread_create(threads + i, NULL, run, changed + i);
    run(changed + 2);
    for (int i = 0; i < others; i++)
        pthread_join(threads[i], NULL);
    printf("%ld %ld %ld\n", changed[0], changed[1], changed[2]);
    return 0;
}
