/* The worker of `bench preload`: takes and gives back a mutex, by orders on standard input (bench/src/compare/process.rs).
 * `uncontended N`: one thread, N times; `contended N`: two threads, N times together. The answer is CPU time in ns: the
 * thread's, or both threads'. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t begin;
static volatile long shared;

static double now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static void lock(long count)
{
    for (long i = 0; i < count; i++) {
        pthread_mutex_lock(&mutex);
        shared++;
        pthread_mutex_unlock(&mutex);
    }
}

static double measured(long count)
{
    double before = now(CLOCK_THREAD_CPUTIME_ID);
    lock(count);
    return now(CLOCK_THREAD_CPUTIME_ID) - before;
}

static long each;
static double taken[2];

static void *contend(void *place)
{
    pthread_barrier_wait(&begin);
    *(double *)place = measured(each);
    return 0;
}

static double contended(long count)
{
    pthread_t threads[2];
    each = count / 2;
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], 0, contend, &taken[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], 0);
    return taken[0] + taken[1];
}

static void *sleeps(void *none)
{
    pause();
    return none;
}

int main(void)
{
    char order[32];
    long count;
    pthread_t thread;
    /* glibc leaves out locked instructions while there is one thread, which there is not when anybody records. */
    pthread_create(&thread, 0, sleeps, 0);
    pthread_barrier_init(&begin, 0, 2);
    while (scanf("%31s %ld", order, &count) == 2) {
        printf("%.0f\n", strcmp(order, "contended") ? measured(count) : contended(count));
        fflush(stdout);
    }
    return 0;
}
