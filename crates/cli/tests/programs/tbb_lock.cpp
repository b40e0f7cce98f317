// Bodies of a parallel algorithm of oneTBB wait for a mutex that a thread outside of it holds.
#include <atomic>
#include <chrono>
#include <mutex>
#include <tbb/parallel_for.h>
#include <thread>

std::mutex cache_mutex;
std::atomic<bool> is_held;

__attribute__((noinline)) void evict() {
    cache_mutex.lock();
    is_held = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(80));
    cache_mutex.unlock();
}

int main() {
    std::thread other(evict);
    while (!is_held)
        std::this_thread::yield();
    tbb::parallel_for(0, 4, [](int) { std::lock_guard<std::mutex> hold(cache_mutex); });
    other.join();
}
