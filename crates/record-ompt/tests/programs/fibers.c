/* Functions that run on stacks of the program's making, of 16 KiB, outside of OpenMP and in a task. Says whether they were enough. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "work.h"

#define STACK (16 << 10)
#define BENEATH (256 << 10)
#define UNTOUCHED 0xa5

static __thread ucontext_t caller, fiber;
static volatile double sink;

__attribute__((noinline)) void spin(void) {
    WORK_NS(150 * MS);
    sink += 1;
}

void on_fiber(void) {
    spin();
    sink += 1;
}

__attribute__((noinline)) static int fits(void) {
    unsigned char *memory = malloc(BENEATH + STACK);
    memset(memory, UNTOUCHED, BENEATH + STACK);
    getcontext(&fiber);
    fiber.uc_stack.ss_sp = memory + BENEATH;
    fiber.uc_stack.ss_size = STACK;
    fiber.uc_link = &caller;
    makecontext(&fiber, on_fiber, 0);
    swapcontext(&caller, &fiber);
    int taken = 0;
    while (taken < BENEATH && memory[taken] == UNTOUCHED) taken++;
    free(memory);
    return taken == BENEATH;
}

int main(void) {
    int fitted = fits();
#pragma omp parallel num_threads(2)
#pragma omp single
#pragma omp task shared(fitted)
    fitted += fits();
    puts(fitted == 2 ? "fits" : "too small");
    return 0;
}
