/* Dies with a lock, while another thread waits for it; with an argument, within the taking of one that is nowhere. */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *waits(void *none)
{
    pthread_mutex_lock(&mutex);
    return none;
}

int main(int count, char **arguments)
{
    (void)arguments;
    pthread_t thread;
    pthread_mutex_lock(&mutex);
    if (count > 1)
        pthread_mutex_lock((pthread_mutex_t *)64);
    pthread_create(&thread, 0, waits, 0);
    while (*(volatile int *)&mutex != 2) /* glibc's value for: a thread waits */
        usleep(1000);
    abort();
}
