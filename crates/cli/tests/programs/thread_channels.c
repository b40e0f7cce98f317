/* Threads that wait for each other by descriptors: thread_channels WAY. The lines that wait and wake are marked. A thread that
   wakes does so when it has seen the other one wait in the kernel, and has worked for a while. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "waiting.h"

static int ends[2];
static sem_t items;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void *produce(void *unused)
{
	work_while_it_waits(0);
	if (write(ends[1], "xxxxxxxx", 8) != 8) /* writes */
		abort();
	return unused;
}

static void *produce_by_copy(void *unused)
{
	int copy = dup(ends[1]);
	close(ends[1]);
	work_while_it_waits(0);
	if (write(copy, "xxxxxxxx", 8) != 8) /* writes to the copy */
		abort();
	return unused;
}

static void *close_end(void *unused)
{
	work_while_it_waits(0);
	close(ends[1]); /* closes */
	return unused;
}

static void *consume(void *unused)
{
	static char room[1 << 16];
	work_while_it_waits(0);
	if (read(ends[0], room, sizeof room) <= 0) /* makes room */
		abort();
	return unused;
}

static void *post(void *unused)
{
	work_while_it_waits(0);
	sem_post(&items); /* posts */
	return unused;
}

static pthread_t first;
static int number;

static void *send_signal(void *unused)
{
	work_while_it_waits(0);
	pthread_kill(first, number); /* signals */
	return unused;
}

static void nothing(int unused)
{
	(void)unused;
}

struct message {
	long type;
	char text[8];
};

static int queue;
static mqd_t posix_queue;

static void *send_message(void *unused)
{
	struct message message = {5, ""};
	work_while_it_waits(0);
	msgsnd(queue, &message, 8, 0); /* sends */
	return unused;
}

static void *send_to_posix_queue(void *unused)
{
	work_while_it_waits(0);
	mq_send(posix_queue, "x", 1, 0); /* sends to the posix queue */
	return unused;
}

static void *take_message(void *unused)
{
	struct message message;
	work_while_it_waits(0);
	msgrcv(queue, &message, 8, 0, 0); /* takes a message */
	return unused;
}

static int set;

static void *post_to_set(void *unused)
{
	struct sembuf posts = {1, 1, 0};
	work_while_it_waits(0);
	semop(set, &posts, 1); /* posts to the set */
	return unused;
}

static volatile int is_initialising;

static void initialise(void)
{
	__atomic_store_n(&is_initialising, 1, __ATOMIC_SEQ_CST);
	work_while_it_waits(0);
}

static void *run_once(void *unused)
{
	pthread_once(&once, initialise); /* runs the routine */
	return unused;
}


int main(int count, char **arguments)
{
	const char *way = count > 1 ? arguments[1] : "";
	pthread_t other = 0;
	char bytes[8];
	struct timespec until;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 100;
	if (!strcmp(way, "pipe") || !strcmp(way, "copy") || !strcmp(way, "close")) {
		pipe(ends);
		void *(*routine)(void *) = way[0] == 'p' ? produce : way[1] == 'o' ? produce_by_copy : close_end;
		pthread_create(&other, NULL, routine, NULL);
		about_to_wait(0);
		if (read(ends[0], bytes, 8) < 0) /* reads */
			return 1;
	} else if (!strcmp(way, "full")) {
		static char much[1 << 16];
		pipe(ends);
		write(ends[1], much, fcntl(ends[1], F_GETPIPE_SZ));
		pthread_create(&other, NULL, consume, NULL);
		about_to_wait(0);
		if (write(ends[1], bytes, 8) != 8) /* waits for room */
			return 1;
	} else if (!strcmp(way, "event")) {
		ends[0] = ends[1] = eventfd(0, 0);
		pthread_create(&other, NULL, produce, NULL);
		about_to_wait(0);
		if (read(ends[0], bytes, 8) != 8) /* reads the counter */
			return 1;
	} else if (!strcmp(way, "pair")) {
		socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
		pthread_create(&other, NULL, produce, NULL);
		about_to_wait(0);
		if (recv(ends[0], bytes, 8, 0) != 8) /* receives */
			return 1;
	} else if (!strcmp(way, "poll")) {
		pipe(ends);
		struct pollfd list[2] = {{STDOUT_FILENO, 0, 0}, {ends[0], POLLIN, 0}};
		pthread_create(&other, NULL, produce, NULL);
		about_to_wait(0);
		if (poll(list, 2, -1) != 1) /* polls */
			return 1;
	} else if (!strcmp(way, "select")) {
		pipe(ends);
		fd_set set;
		FD_ZERO(&set);
		FD_SET(ends[0], &set);
		pthread_create(&other, NULL, produce, NULL);
		about_to_wait(0);
		if (select(ends[0] + 1, &set, NULL, NULL, NULL) != 1) /* selects */
			return 1;
	} else if (!strcmp(way, "epoll")) {
		ends[0] = ends[1] = eventfd(0, EFD_NONBLOCK);
		int set = epoll_create1(0);
		struct epoll_event event = {EPOLLIN, {.u64 = 4711}};
		epoll_ctl(set, EPOLL_CTL_ADD, ends[0], &event);
		pthread_create(&other, NULL, produce, NULL);
		about_to_wait(0);
		if (epoll_wait(set, &event, 1, -1) != 1) /* waits for events */
			return 1;
	} else if (!strcmp(way, "timed")) {
		pthread_create(&other, NULL, post, NULL);
		about_to_wait(0);
		if (sem_timedwait(&items, &until)) /* waits for an item */
			return 1;
	} else if (!strcmp(way, "once")) {
		pthread_create(&other, NULL, run_once, NULL);
		while (!__atomic_load_n(&is_initialising, __ATOMIC_SEQ_CST))
			sched_yield();
		about_to_wait(0);
		pthread_once(&once, initialise); /* waits for the routine */
	} else if (!strcmp(way, "signal") || !strcmp(way, "handler") || !strcmp(way, "alarm")) {
		sigset_t own, none;
		int got = 0;
		first = pthread_self();
		number = way[0] == 'a' ? SIGALRM : way[0] == 's' ? SIGUSR1 : SIGUSR2;
		sigemptyset(&own);
		sigemptyset(&none);
		sigaddset(&own, number);
		signal(SIGUSR2, nothing);
		pthread_sigmask(SIG_BLOCK, &own, NULL);
		if (way[0] == 'a') {
			struct itimerval once = {{0, 0}, {0, 50000}};
			setitimer(ITIMER_REAL, &once, NULL);
		} else {
			pthread_create(&other, NULL, send_signal, NULL);
		}
		about_to_wait(0);
		if (way[0] == 'h') {
			sigsuspend(&none); /* waits for a handler */
		} else {
			if (sigwait(&own, &got) || got != number) /* waits for a signal */
				return 1;
		}
	} else if (!strcmp(way, "message") || !strcmp(way, "room")) {
		struct message message = {5, ""};
		int is_received = way[0] == 'm';
		queue = msgget(IPC_PRIVATE, 0600);
		pthread_create(&other, NULL, is_received ? send_message : take_message, NULL);
		if (is_received) {
			about_to_wait(0);
			msgrcv(queue, &message, 8, 5, 0); /* waits for a message */
		} else {
			while (!msgsnd(queue, &message, 8, IPC_NOWAIT))
				;
			about_to_wait(0);
			msgsnd(queue, &message, 8, 0); /* waits for room in the queue */
		}
		pthread_join(other, NULL);
		other = 0;
		msgctl(queue, IPC_RMID, NULL);
	} else if (!strcmp(way, "posix")) {
		struct mq_attr attributes = {0, 4, 8, 0};
		char name[32];
		snprintf(name, sizeof name, "/taskscope-%d", (int)getpid());
		posix_queue = mq_open(name, O_CREAT | O_EXCL | O_RDWR, 0600, &attributes);
		if (posix_queue == (mqd_t)-1)
			return 1;
		mq_unlink(name);
		pthread_create(&other, NULL, send_to_posix_queue, NULL);
		about_to_wait(0);
		if (mq_receive(posix_queue, bytes, 8, NULL) != 1) /* receives a message */
			return 1;
	} else if (!strcmp(way, "set")) {
		struct sembuf takes = {1, -1, 0};
		set = semget(IPC_PRIVATE, 2, 0600);
		pthread_create(&other, NULL, post_to_set, NULL);
		about_to_wait(0);
		semop(set, &takes, 1); /* waits for the set */
		semctl(set, 0, IPC_RMID);
	} else if (!strcmp(way, "child")) {
		pipe(ends);
		pid_t child = fork();
		if (!child) {
			waiting[0] = getppid();
			work_while_it_waits(0);
			_exit(write(ends[1], "xxxxxxxx", 8) != 8);
		}
		close(ends[1]);
		if (read(ends[0], bytes, 8) != 8) /* reads from a child */
			return 1;
		waitpid(child, NULL, 0);
	} else if (!strcmp(way, "wait")) {
		pid_t child = fork();
		if (!child) {
			waiting[0] = getppid();
			work_while_it_waits(0);
			_exit(0);
		}
		waitpid(child, NULL, 0); /* waits for a child */
	} else if (!strcmp(way, "system")) {
		if (system("exec sleep 0.05")) /* runs a command */
			return 1;
	} else if (!strcmp(way, "pclose")) {
		FILE *command = popen("exec sleep 0.05", "r");
		if (!command || pclose(command)) /* closes a command */
			return 1;
	} else if (!strcmp(way, "flock")) {
		int file = open("locked", O_RDWR | O_CREAT, 0600);
		struct flock whole = {.l_type = F_WRLCK};
		pid_t child;
		int ready[2];
		pipe(ready);
		if (!(child = fork())) {
			fcntl(file, F_SETLK, &whole);
			write(ready[1], "x", 1);
			waiting[0] = getppid();
			work_while_it_waits(0);
			_exit(0);
		}
		read(ready[0], bytes, 1);
		fcntl(file, F_SETLKW, &whole); /* locks the file */
		waitpid(child, NULL, 0);
	} else if (!strcmp(way, "free")) {
		pipe(ends);
		for (int i = 0; i < 1000; i++) {
			write(ends[1], "x", 1);
			read(ends[0], bytes, 1);
		}
	}
	if (other)
		pthread_join(other, NULL);
	printf("%s\n", way);
	return 0;
}
