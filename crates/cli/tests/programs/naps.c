/* Sleeps for 300 ms. */
#include <unistd.h>

int main(void) {
    usleep(300000);
    return 3;
}
