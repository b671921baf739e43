/* Dies with a lock, while another thread waits for it. */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *waits(void *none)
{
    pthread_mutex_lock(&mutex);
    return none;
}

int main(void)
{
    pthread_t thread;
    pthread_mutex_lock(&mutex);
    pthread_create(&thread, 0, waits, 0);
    while (*(volatile int *)&mutex != 2) /* glibc's word for: somebody waits */
        usleep(1000);
    abort();
}
