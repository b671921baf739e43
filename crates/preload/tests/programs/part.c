/* A library that takes a lock in a function whose name is the macro NAME. */
#include <pthread.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

__attribute__((noinline)) void NAME(void)
{
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
}

void works(void)
{
    NAME();
    NAME();
}
