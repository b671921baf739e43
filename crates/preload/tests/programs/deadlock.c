/* Three threads, each with one lock, each of which waits for the next one's; a fourth waits for the first one's. Prints their
 * numbers when all wait, and waits for its input to end. With an argument, the four are on CPU 0, and the main thread takes a lock
 * of its own on CPU 1 many times before it prints. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MANY = 3 };
static pthread_mutex_t mutexes[MANY];
static pthread_barrier_t barrier;
static volatile pid_t tids[MANY + 1];

static void *waits(void *number)
{
    long at = (long)number;
    tids[at] = gettid();
    if (at < MANY)
        pthread_mutex_lock(&mutexes[at]);
    pthread_barrier_wait(&barrier);
    pthread_mutex_lock(&mutexes[(at + 1) % MANY]);
    return 0;
}

static int sleeps(pid_t tid)
{
    char path[64], line[256] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/syscall", tid);
    FILE *file = fopen(path, "r");
    if (file) {
        fgets(line, sizeof line, file);
        fclose(file);
    }
    for (int i = 0; i < MANY; i++) {
        char futex[64];
        snprintf(futex, sizeof futex, "202 0x%lx ", (unsigned long)&mutexes[i]);
        if (!strncmp(line, futex, strlen(futex)))
            return 1;
    }
    return 0;
}

static void go_to(int cpu)
{
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(cpu, &cpus);
    if (sched_setaffinity(0, sizeof cpus, &cpus))
        perror("sched_setaffinity");
}

int main(int argc, char **argv)
{
    (void)argv;
    if (argc > 1)
        go_to(0);
    pthread_barrier_init(&barrier, 0, MANY + 1);
    for (long i = 0; i <= MANY; i++) {
        pthread_t thread;
        pthread_create(&thread, 0, waits, (void *)i);
    }
    for (int i = 0; i <= MANY; i++)
        while (!sleeps(tids[i]))
            usleep(1000);
    if (argc > 1) {
        static pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
        go_to(1);
        for (int i = 0; i < 10000; i++) {
            pthread_mutex_lock(&own);
            pthread_mutex_unlock(&own);
        }
    }
    printf("%d %d %d %d\n", tids[0], tids[1], tids[2], tids[3]);
    fflush(stdout);
    while (getchar() != EOF)
        ;
    _exit(0);
}
