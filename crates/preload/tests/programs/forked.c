// A program with threads whose child uses a lock, and takes its time: ends with the child's status.
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *nothing(void *argument) { return argument; }

int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, nothing, 0);
    pthread_join(thread, 0);
    if (fork() == 0) {
        pthread_mutex_lock(&lock);
        pthread_mutex_unlock(&lock);
        usleep(200000);
        _exit(7);
    }
    int status;
    wait(&status);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}
