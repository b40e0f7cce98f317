/* Functions within functions, which only their enclosing functions distinguish, and a task in one of them. */
#include <time.h>

#include "virtual_time.h"

__attribute__((noinline)) static void burn(double seconds) {
    if (IS_VIRTUAL_TIME) {
        VIRTUAL_WORK((uint64_t)(seconds * 1e9));
        return;
    }
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    for (double end = t.tv_sec + t.tv_nsec / 1e9 + seconds; t.tv_sec + t.tv_nsec / 1e9 < end;)
        clock_gettime(CLOCK_MONOTONIC, &t);
    asm volatile("");
}

namespace {
struct Less {
    __attribute__((noinline)) bool operator<(const Less &) const {
        burn(0.03);
        asm volatile("");
        return true;
    }
};
} // namespace

__attribute__((noinline)) static int two(int n) {
    struct Local {
        __attribute__((noinline)) void run() {
#pragma omp parallel num_threads(2)
#pragma omp single
            {
#pragma omp task
                {
                    burn(0.03);
                    asm volatile("");
                }
            }
            asm volatile("");
        }
    };
    auto first = [](int) __attribute__((noinline)) { burn(0.03); asm volatile(""); };
    auto second = [](int) __attribute__((noinline)) { burn(0.04); asm volatile(""); };
    first(n);
    second(n);
    Local().run();
    asm volatile("");
    return n;
}

int main() {
    two(1);
    bool less = Less() < Less();
    return less ? 0 : 1;
}
