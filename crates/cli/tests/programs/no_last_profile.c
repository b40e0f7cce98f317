/* Lasts for one profile, then may not write files; with an argument it kills itself. */
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

int main(int count, char **words) {
    usleep(900000);
    if (count > 1) kill(getpid(), SIGKILL);
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_FSIZE, &none);
    return 0;
}
