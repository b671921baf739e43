/* Executes its arguments, if there are any, with a lock that it has, from within functions and while a thread waits in others; each
 * program calls `leaf`: twice before it executes another one, else ten times. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;

void leaf(void)
{
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
}

void *waits(void *none)
{
    leaf();
    pthread_barrier_wait(&barrier);
    for (;;)
        pause();
    return none;
}

void executes(char **arguments)
{
    pthread_t thread;
    pthread_barrier_init(&barrier, 0, 2);
    pthread_create(&thread, 0, waits, 0);
    pthread_barrier_wait(&barrier);
    leaf();
    pthread_mutex_lock(&mutex);
    execv(arguments[0], arguments);
    perror(arguments[0]);
}

int main(int count, char **arguments)
{
    if (count > 1)
        executes(arguments + 1);
    for (int i = 0; i < 10; i++)
        leaf();
    return 0;
}
