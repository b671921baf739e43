/* The worker of `bench functions`: calls a function that does nothing, by orders on standard input
 * (bench/src/compare/process.rs). `function N`, and beside it `getppid N` and `printf N`. The answer is the thread's CPU time
 * in ns, of a second turn behind a first. Only the function is instrumented. The argument is the CPU to run on. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PLAIN __attribute__((no_instrument_function))

__attribute__((noinline)) long function(long number)
{
    __asm__ volatile("");
    return number;
}

PLAIN static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

PLAIN static void run(const char *what, long count, FILE *nowhere)
{
    volatile long sum = 0;
    if (!strcmp(what, "function"))
        for (long i = 0; i < count; i++)
            sum += function(i);
    else if (!strcmp(what, "getppid"))
        for (long i = 0; i < count; i++)
            sum += syscall(SYS_getppid);
    else
        for (long i = 0; i < count; i++)
            fprintf(nowhere, "entry of function %ld\nexit of function %ld\n", i, i);
}

PLAIN int main(int argc, char **argv)
{
    char order[32];
    long count;
    cpu_set_t cpus;
    FILE *nowhere = fopen("/dev/null", "w");
    CPU_ZERO(&cpus);
    CPU_SET(argc > 1 ? atoi(argv[1]) : 0, &cpus);
    if (!nowhere || sched_setaffinity(0, sizeof cpus, &cpus))
        return 1;
    while (scanf("%31s %ld", order, &count) == 2) {
        double before;
        /* Who has done nothing for a while finds other states of buffers and caches than who is at it. */
        run(order, count, nowhere);
        before = now();
        run(order, count, nowhere);
        printf("%.0f\n", now() - before);
        fflush(stdout);
    }
    return 0;
}
