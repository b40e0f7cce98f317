/* Two processes that write to each other over a socket. Each message is told in two halves, with the same
 * domain and id: where it is sent, and where it is received. A view of the trace draws a line between them.
 *
 *	cc mail.c -o mail $(pkg-config --cflags --libs taskscope)
 *	TASKSCOPE_TRACE_DIR=mail.trace ./mail && taskscope emulate --nanos plain mail.trace
 */
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <taskscope.h>
#include <unistd.h>

enum { LETTERS = 5 };

/* Ids that both processes know: the sender's number, and how many it has sent before. */
static uint64_t
id_of(unsigned sender, unsigned count)
{
	return (uint64_t) sender << 32 | count;
}

static int
talk(int socket, unsigned self)
{
	if (self == 1) {
		/* The numbers of names are a process's own: only names are the same in both. */
		TASKSCOPE_NAMED(other, taskscope_domain("something else", ""));
		(void) other;
	}
	TASKSCOPE_NAMED(mail, taskscope_domain("mail", "between two processes"));
	TASKSCOPE_NAMED(bytes, taskscope_key_of("letter-size", "of a letter", TASKSCOPE_USER, "bytes", 0));
	unsigned other = 1 - self;
	for (unsigned count = 0; count < LETTERS; count++) {
		uint64_t letter = 1000 + count;
		if (self == count % 2) {
			taskscope_send(mail, id_of(self, count), bytes, letter, other);
			if (write(socket, &letter, sizeof letter) != sizeof letter)
				return 1;
		} else {
			if (read(socket, &letter, sizeof letter) != sizeof letter)
				return 1;
			taskscope_receive(mail, id_of(other, count), bytes, letter, other);
		}
	}
	return 0;
}

int
main(void)
{
	int ends[2], status = 0;
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
		return 1;
	pid_t child = fork();
	if (child < 0)
		return 1;
	/* Each process starts recording itself, into the same trace. */
	taskscope_start(NULL);
	int failed = talk(ends[child == 0], child == 0);
	taskscope_finish();
	if (child == 0)
		return failed;
	return failed || wait(&status) < 0 || status != 0;
}
