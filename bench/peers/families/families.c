/* The load of `bench families`, as a build makes it: many short programs.
 * `load COUNT JOBS PROGRAM ARGUMENT...` runs a program COUNT times, JOBS at a time, and prints how long that took and
 * the programs' CPU time, in seconds.
 * `short COUNT` is such a program: it takes and gives back a mutex COUNT times, which are two events each. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static double cpu(int who)
{
    struct rusage usage;
    getrusage(who, &usage);
    return usage.ru_utime.tv_sec + usage.ru_stime.tv_sec + (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static void await(void)
{
    int status;
    if (wait(&status) < 0 || status != 0)
        exit(1);
}

static void load(long count, long jobs, char **program)
{
    double begin = now();
    long running = 0;
    for (long i = 0; i < count; i++) {
        if (running == jobs) {
            await();
            running--;
        }
        pid_t child = fork();
        if (child < 0)
            exit(1);
        if (child == 0) {
            execv(program[0], program);
            _exit(1);
        }
        running++;
    }
    for (; running > 0; running--)
        await();
    double wall = now() - begin;
    printf("%f %f\n", wall, cpu(RUSAGE_SELF) + cpu(RUSAGE_CHILDREN));
}

int main(int argc, char **argv)
{
    if (argc > 4 && strcmp(argv[1], "load") == 0) {
        load(atol(argv[2]), atol(argv[3]), argv + 4);
    } else if (argc == 3 && strcmp(argv[1], "short") == 0) {
        for (long i = atol(argv[2]); i > 0; i--) {
            pthread_mutex_lock(&mutex);
            pthread_mutex_unlock(&mutex);
        }
    } else {
        return 2;
    }
    return 0;
}
