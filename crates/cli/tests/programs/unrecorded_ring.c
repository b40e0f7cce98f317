/* A function of liburing by name alone: it waits for 60 ms by a system call of its own. */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>

int io_uring_submit_and_wait(void *ring, unsigned least)
{
	static int word;
	struct timespec time = {0, 60000000};
	(void)ring;
	if (!least)
		return 0;
#ifdef __x86_64__
	register long r10 __asm__("r10") = (long)&time;
	long result;
	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(SYS_futex), "D"(&word), "S"((long)FUTEX_WAIT_PRIVATE), "d"(0L), "r"(r10)
			 : "rcx", "r11", "memory");
#else
	register long x8 __asm__("x8") = SYS_futex;
	register long x0 __asm__("x0") = (long)&word;
	register long x1 __asm__("x1") = FUTEX_WAIT_PRIVATE;
	register long x2 __asm__("x2") = 0;
	register long x3 __asm__("x3") = (long)&time;
	__asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
#endif
	return 1;
}
