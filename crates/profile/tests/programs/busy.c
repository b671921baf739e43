/* Computes for SECONDS of CPU time on each of THREADS threads: three quarters of it in heavy(), a quarter in light(). Both call
   spin(), which with -DINLINE is a part of them. How long a round takes varies, so that samples do not come at the same point of
   each. Prints the numbers of its threads. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static __thread volatile unsigned long sink;
static __thread unsigned long size;
static double seconds;

static double used(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

#ifdef INLINE
#define SPIN static inline __attribute__((always_inline))
#else
#define SPIN __attribute__((noinline, noipa))
#endif

/* gcc makes no frames for functions that call nothing, whatever its options; then their callers are missing in chains. */
__attribute__((noinline, noipa)) unsigned long same(unsigned long value) {
    return value;
}

SPIN unsigned long spin(unsigned long count) {
    unsigned long value = same(1);
    for (unsigned long at = 0; at < count; at++) {
        value = value * 6364136223846793005UL + at;
        sink = value;
    }
    return value;
}

__attribute__((noinline, noipa)) unsigned long light(void) {
    unsigned long value = spin(size);
    sink = value;
    return value + 1;
}

__attribute__((noinline, noipa)) unsigned long heavy(void) {
    unsigned long value = spin(3 * size);
    sink = value;
    return value + 1;
}

__attribute__((noinline, noipa)) void *work(void *unused) {
    printf("%ld\n", syscall(SYS_gettid));
    fflush(stdout);
    unsigned long random = 1;
    while (used() < seconds) {
        random = random * 6364136223846793005UL + 1442695040888963407UL;
        size = 50000 + (random >> 33) % 100000;
        sink = light();
        sink = heavy();
    }
    return unused;
}

int main(int count, char **arguments) {
    pthread_t threads[16];
    int more = count > 2 ? atoi(arguments[2]) - 1 : 0;
    seconds = count > 1 ? atof(arguments[1]) : 1;
    for (int at = 0; at < more; at++)
        pthread_create(&threads[at], NULL, work, NULL);
    work(NULL);
    for (int at = 0; at < more; at++)
        pthread_join(threads[at], NULL);
    return 0;
}
