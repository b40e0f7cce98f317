/* Ends so that no profile is written: -DLEAVES by a system call, -DKILLED by a signal, otherwise after a short sleep. */
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(void) {
#ifdef LEAVES
    syscall(SYS_exit_group, 3);
#elif defined KILLED
    raise(SIGKILL);
#else
    usleep(20000);
#endif
    return 0;
}
