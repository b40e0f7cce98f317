// A tool that declines: what a runtime takes for looking for one.
#include <stddef.h>

void *ompt_start_tool(unsigned version, const char *runtime) {
    (void)version;
    (void)runtime;
    return NULL;
}
