/* No OpenMP; a detached thread works on while main ends. With an argument main waits for it instead. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
static volatile double sink;
__attribute__((noinline)) static double sums(int count)
{
    double sum = 0;
    for (int k = 1; k < count; k++)
        sum += sin(k * 1e-3);
    return sum;
}
__attribute__((noinline)) static void in_thread(long rounds)
{
    for (long i = 0; i != rounds; i++)
        sink += sums(1000);
}
__attribute__((noinline)) static void in_main(void)
{
    sink += sums(6000000);
}
static void *begin(void *rounds)
{
    in_thread((long)rounds);
    return 0;
}
int main(int count, char **arguments)
{
    pthread_t thread;
    pthread_create(&thread, 0, begin, (void *)(count > 1 ? 20000L : -1L));
    in_main();
    if (count > 1)
        pthread_join(thread, 0);
    else
        pthread_detach(thread);
    puts(arguments[0] ? "done" : "");
    return 0;
}
