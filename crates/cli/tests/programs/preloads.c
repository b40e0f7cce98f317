/* Prints LD_PRELOAD. With -DHAS_RUNTIME a runtime is linked in; with -DASKS_BY_NAME only its request to the loader is. */
#include <stdio.h>
#include <stdlib.h>

#ifdef HAS_RUNTIME
void __kmpc_fork_call(void) {}
#endif
#ifdef ASKS_BY_NAME
const char *volatile asked = "ompt_start_tool";
#endif

int main(void) {
    char *list = getenv("LD_PRELOAD");
    puts(list ? list : "none");
    return 0;
}
