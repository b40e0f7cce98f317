// Threads of C++ that wait for each other, one way a run: thread_waits WAY. The lines that wait and wake are marked.
#include <atomic>
#include <barrier>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <future>
#include <latch>
#include <mutex>
#include <semaphore>
#include <shared_mutex>
#include <string>
#include <thread>
#include <unistd.h>

using namespace std::chrono_literals;

static std::mutex cache_mutex;
static std::shared_mutex table_mutex;
static std::condition_variable ready;
static std::counting_semaphore<4> items(0);
static std::latch started(2);
static std::barrier round_end(2);
static std::atomic<int> flag;
static bool is_ready;
/* Ids of threads that are about to wait. */
static std::atomic<int> waiting[2];

static void about_to_wait(int number)
{
	waiting[number] = gettid();
}

static bool sleeps(int tid)
{
	std::ifstream file("/proc/self/task/" + std::to_string(tid) + "/stat");
	std::string text;
	std::getline(file, text);
	const auto end = text.rfind(')');
	return end == std::string::npos || text.substr(end + 2, 1) == "S";
}

/* Until that thread waits in the kernel, and the time of a hold longer. */
static void until_it_waits(int number)
{
	while (!waiting[number])
		std::this_thread::sleep_for(1ms);
	for (int times = 0; times < 5;) {
		times = sleeps(waiting[number]) ? times + 1 : 0;
		std::this_thread::sleep_for(1ms);
	}
	std::this_thread::sleep_for(60ms);
}

/* A call that is its function's last is a jump: the function is on the stack no more. */
static void stay()
{
	waiting[0] = 0;
}

static void evict()
{
	std::lock_guard<std::mutex> guard(cache_mutex); /* holds the mutex */
	about_to_wait(0);
	until_it_waits(1);
} /* releases the mutex */

static void write_table()
{
	std::unique_lock<std::shared_mutex> guard(table_mutex); /* holds the table */
	about_to_wait(0);
	until_it_waits(1);
} /* releases the table */

static void produce()
{
	until_it_waits(1);
	std::lock_guard<std::mutex> guard(cache_mutex);
	is_ready = true;
	ready.notify_one(); /* signals */
}

/* Its last call is a jump: the function is on the stack no more when it wakes the other thread. */
static void signal_last()
{
	until_it_waits(1);
	{
		std::lock_guard<std::mutex> guard(cache_mutex);
		is_ready = true;
	}
	ready.notify_one();
}

static void slow_child(int number)
{
	until_it_waits(number);
	stay();
}

static void post()
{
	until_it_waits(1);
	items.release(); /* posts */
	stay();
}

static void arrive_late()
{
	until_it_waits(1);
	started.count_down(); /* opens the latch */
	stay();
}

static void end_round()
{
	until_it_waits(1);
	round_end.arrive_and_wait(); /* comes last */
}

static void set_flag()
{
	until_it_waits(1);
	flag = 1;
	flag.notify_all(); /* notifies */
	stay();
}

static int answer()
{
	until_it_waits(1);
	return 42; /* answers */
}

static void fulfil(std::promise<int> *promise)
{
	until_it_waits(1);
	promise->set_value(42); /* fulfils */
	stay();
}

static void until_held()
{
	while (!waiting[0])
		std::this_thread::sleep_for(1ms);
}

int main(int count, char **arguments)
{
	const char *way = count > 1 ? arguments[1] : "";
	std::thread thread;
	if (!strcmp(way, "mutex")) {
		thread = std::thread(evict);
		until_held();
		about_to_wait(1);
		std::lock_guard<std::mutex> guard(cache_mutex); /* waits for the mutex */
	} else if (!strcmp(way, "shared")) {
		thread = std::thread(write_table);
		until_held();
		about_to_wait(1);
		std::shared_lock<std::shared_mutex> guard(table_mutex); /* waits for the table */
	} else if (!strcmp(way, "condition")) {
		thread = std::thread(produce);
		std::unique_lock<std::mutex> guard(cache_mutex);
		about_to_wait(1);
		ready.wait(guard, [] { return is_ready; }); /* waits for the condition */
	} else if (!strcmp(way, "tail")) {
		thread = std::thread(signal_last);
		std::unique_lock<std::mutex> guard(cache_mutex);
		about_to_wait(1);
		ready.wait(guard, [] { return is_ready; }); /* waits for the last call */
	} else if (!strcmp(way, "join")) {
		thread = std::thread(slow_child, 1);
		about_to_wait(1);
		thread.join(); /* joins */
	} else if (!strcmp(way, "semaphore")) {
		thread = std::thread(post);
		about_to_wait(1);
		items.acquire(); /* waits for an item */
	} else if (!strcmp(way, "latch")) {
		thread = std::thread(arrive_late);
		about_to_wait(1);
		started.arrive_and_wait(); /* waits for the latch */
	} else if (!strcmp(way, "barrier")) {
		thread = std::thread(end_round);
		about_to_wait(1);
		round_end.arrive_and_wait(); /* waits in the barrier */
	} else if (!strcmp(way, "atomic")) {
		thread = std::thread(set_flag);
		about_to_wait(1);
		flag.wait(0); /* waits for the flag */
	} else if (!strcmp(way, "async")) {
		auto result = std::async(std::launch::async, answer);
		about_to_wait(1);
		if (result.get() != 42) /* waits for the answer */
			return 3;
	} else if (!strcmp(way, "promise")) {
		std::promise<int> promise;
		auto result = promise.get_future();
		thread = std::thread(fulfil, &promise);
		about_to_wait(1);
		if (result.get() != 42) /* waits for the promise */
			return 3;
	} else {
		return 2;
	}
	if (thread.joinable())
		thread.join();
	puts(way);
	return 0;
}
