/* Brings a pthread_mutex_lock of its own, to be built with -rdynamic: as sanitizers do that are linked into a program. */
#include <pthread.h>
#include <stdio.h>

static int taken;

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    (void)mutex;
    taken++;
    return 0;
}

int main(void)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&mutex);
    printf("%d\n", taken);
}
