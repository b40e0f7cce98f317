/* An OMPT tool that prints when it starts and ends. */
#include <stdio.h>

static int start(void *lookup, int device, void *data) {
    printf("started\n");
    return 1;
}

static void end(void *data) { printf("ended\n"); }

static struct {
    void *start, *end;
    unsigned long data;
} own = {start, end, 0};

void *ompt_start_tool(unsigned version, const char *runtime) { return &own; }
