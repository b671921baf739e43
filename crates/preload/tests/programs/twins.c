/* Two processes with a mutex at the same address, and a thread in each that takes it, and often when there is something to be read; it
   prints process and mutex each time, and stays until the writer of that has ended. All run on one CPU, so that later events overwrite
   earlier ones. */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void take(int times) {
    while (times-- > 0) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
    dprintf(1, "%d %p\n", getpid(), (void *)&mutex);
}

static void wait_for(short events) {
    struct pollfd input = {0, events, 0};
    while (poll(&input, 1, -1) < 1)
        ;
}

static void *works(void *none) {
    take(1);
    wait_for(POLLIN);
    take(100000);
    wait_for(0); /* for POLLHUP */
    return none;
}

int main(void) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
    for (int child = 0; child < 2; child++) {
        if (fork() == 0) {
            pthread_t thread;
            pthread_create(&thread, NULL, works, NULL);
            pthread_join(thread, NULL);
            _exit(0);
        }
    }
    while (wait(NULL) > 0)
        ;
    return 0;
}
