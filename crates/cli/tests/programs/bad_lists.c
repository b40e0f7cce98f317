// Polls lists that are not there: the kernel refuses them.
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/select.h>
#include <unistd.h>

static void *const nowhere = (void *)(uintptr_t)0x7f0000001000;

static void show(const char *call, int result)
{
	printf("%s %d %d\n", call, result, result < 0 ? errno : 0);
}

int main(void)
{
	int ends[2];
	fd_set set;
	if (pipe(ends) || write(ends[1], "x", 1) != 1)
		return 1;
	struct pollfd entry = {ends[0], POLLIN, 0};
	show("poll", poll(&entry, 1, 0));
	show("poll nowhere", poll(nowhere, 3, 0));
	show("poll near null", poll((void *)8, 2, 0));
	show("select nowhere", select(4, nowhere, NULL, NULL, NULL));
	FD_ZERO(&set);
	FD_SET(ends[0], &set);
	show("select", select(ends[0] + 1, &set, NULL, NULL, NULL));
	return 0;
}
