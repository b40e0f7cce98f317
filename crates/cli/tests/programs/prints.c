/* Prints -DLINE and exits with -DSTATUS. With -DWORKS computes before. */
#include <stdio.h>

int main(void) {
#ifdef WORKS
    volatile double sum = 0;
    for (int i = 0; i < 60000000; i++) sum += i;
#endif
    puts(LINE);
    return STATUS;
}
