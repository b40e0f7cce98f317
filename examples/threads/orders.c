/* Threads without OpenMP: a producer, workers that take orders from a queue, and a lock held for long.

   `produce` makes one order each MS milliseconds; WORKERS threads wait for it at the condition `more`. Each worker
   computes for a twentieth of that, and adds to `sums` under the mutex `books` in `enter`. After every eighth order it
   holds `books` for 4 * MS milliseconds in `write_out`, where it sleeps as in a write to a slow disk.

   By construction, waits for `books` are charged to `write_out`, and waits for `more` to `produce`.

   Usage: orders [ORDERS [MS]]    Default: 100 orders, 2 ms. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { WORKERS = 3 };

static pthread_mutex_t queue = PTHREAD_MUTEX_INITIALIZER, books = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static int waiting_orders, orders = 100, done, sums;
static double ms = 2;

/* Computes for some milliseconds of the thread's CPU time. */
static void busy_ms(double duration)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    double end = now.tv_sec * 1e3 + now.tv_nsec / 1e6 + duration;
    do clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    while (now.tv_sec * 1e3 + now.tv_nsec / 1e6 < end);
}

static void *produce(void *unused)
{
    for (int order = 0; order < orders; order++) {
        busy_ms(ms);
        pthread_mutex_lock(&queue);
        waiting_orders++;
        pthread_cond_signal(&more);
        pthread_mutex_unlock(&queue);
    }
    pthread_mutex_lock(&queue);
    done = 1;
    pthread_cond_broadcast(&more);
    pthread_mutex_unlock(&queue);
    return unused;
}

static void enter(int amount)
{
    pthread_mutex_lock(&books);
    sums += amount;
    pthread_mutex_unlock(&books);
}

static void write_out(void)
{
    pthread_mutex_lock(&books);
    nanosleep(&(struct timespec){.tv_nsec = (long)(4e6 * ms)}, NULL); /* the lock is held for long */
    pthread_mutex_unlock(&books);
}

static int take(void)
{
    pthread_mutex_lock(&queue);
    while (!waiting_orders && !done) pthread_cond_wait(&more, &queue);
    int order = waiting_orders ? waiting_orders-- : 0;
    pthread_mutex_unlock(&queue);
    return order;
}

static void *work(void *unused)
{
    for (int taken = 1; take(); taken++) {
        busy_ms(ms / 20);
        enter(1);
        if (taken % 8 == 0) write_out();
    }
    return unused;
}

int main(int argc, char **argv)
{
    if (argc > 1) orders = atoi(argv[1]);
    if (argc > 2) ms = atof(argv[2]);
    pthread_t producer, workers[WORKERS];
    pthread_create(&producer, NULL, produce, NULL);
    for (int i = 0; i < WORKERS; i++) pthread_create(&workers[i], NULL, work, NULL);
    pthread_join(producer, NULL);
    for (int i = 0; i < WORKERS; i++) pthread_join(workers[i], NULL);
    printf("%d orders\n", sums);
    return sums == orders ? 0 : 1;
}
