/* Calls by pointers, to be built with -no-pie: the functions' addresses are then those of stubs in the program. */
#include <pthread.h>
#include <stdlib.h>

int main(void)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    void *(*volatile allocate)(size_t) = malloc;
    int (*volatile lock)(pthread_mutex_t *) = pthread_mutex_lock;
    free(allocate(1));
    return lock(&mutex);
}
