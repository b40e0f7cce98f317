// A program with ROCTX: ranges that nest, that overlap, and that end on another thread, and marks. Prints the library's results.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

void roctxMarkA(const char *);
int roctxRangePushA(const char *);
int roctxRangePop(void);
uint64_t roctxRangeStartA(const char *);
void roctxRangeStop(uint64_t);
int roctxNameOsThread(const char *);

static uint64_t handed_over;

static void *other(void *nothing) {
    roctxNameOsThread("steering of ranges");
    roctxRangePushA("other");
    roctxRangeStop(handed_over);
    roctxRangePop();
    return nothing;
}

int main(void) {
    pthread_t thread;
    int levels = 0;
    for (int step = 0; step < 3; step++) {
        levels = 3 * levels + roctxRangePushA("step");
        levels = 3 * levels + roctxRangePushA("kernel");
        levels = 3 * levels + roctxRangePop();
        levels = 3 * levels + roctxRangePop();
    }
    uint64_t first = roctxRangeStartA("overlapping"), second = roctxRangeStartA("overlapping");
    roctxRangeStop(first);
    roctxRangeStop(second);
    handed_over = roctxRangeStartA("handed over");
    if (pthread_create(&thread, NULL, other, NULL)) return 1;
    pthread_join(thread, NULL);
    // The range of the other thread's end is closed here.
    roctxRangeStop(roctxRangeStartA("overlapping"));
    roctxMarkA("done");
    roctxMarkA(NULL);
    roctxRangePushA(NULL);
    int last = roctxRangePop(), none = roctxRangePop();
    printf("%d %d %d\n", levels, last, none);
    return 0;
}
