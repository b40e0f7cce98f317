/* Handles SIGURG itself: by signal(), then for one signal only, and tells what came and what the C library says. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "work.h"
static volatile int came, sent_by_user;
static void by_number(int number)
{
    (void)number;
    came++;
}
static void by_info(int number, siginfo_t *info, void *context)
{
    (void)number, (void)context;
    came++;
    sent_by_user += info->si_code == SI_USER;
}
static void work(void) { WORK_NS(100 * MS); }
int main(void)
{
    struct sigaction action, old;
    signal(SIGURG, by_number);
    work();
    raise(SIGURG);
    memset(&action, 0, sizeof action);
    action.sa_sigaction = by_info;
    action.sa_flags = SA_SIGINFO | SA_RESETHAND;
    sigaction(SIGURG, &action, &old);
    printf("%d ", old.sa_handler == by_number);
    for (int i = 0; i < 2; i++) {
        work();
        kill(getpid(), SIGURG);
    }
    work();
    sigaction(SIGURG, 0, &old);
    printf("%d %d %d\n", came, sent_by_user, old.sa_handler == SIG_DFL);
    return 0;
}
