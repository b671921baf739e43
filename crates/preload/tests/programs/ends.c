/* Takes locks where programs begin and end: in what a library does when it is loaded and unloaded, in destructors of a thread's
 * own data, in destructors of the program, in children of fork and vfork. Prints for each lock its address and how often it is
 * taken, with all children. The argument is the path of plugin.c's library. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PLUGIN, THREAD, FORKED, VFORKED, EXIT, PLACES };
static pthread_mutex_t mutexes[PLACES];
static const int counts[PLACES] = { 2 * 2 * 5, 4, 6, 3, 2 * 7 };

static void take(int place, int count)
{
    for (int i = 0; i < count; i++) {
        pthread_mutex_lock(&mutexes[place]);
        pthread_mutex_unlock(&mutexes[place]);
    }
}

void plugin_takes(void) { take(PLUGIN, 5); }

static void at_thread_exit(void *none)
{
    (void)none;
    take(THREAD, 4);
}

static void *thread(void *key)
{
    pthread_setspecific(*(pthread_key_t *)key, key);
    return 0;
}

static void at_exit(void) { take(EXIT, 3); }
__attribute__((destructor)) static void at_end(void) { take(EXIT, 4); }

int main(int count, char **arguments)
{
    for (int i = 0; i < PLACES; i++)
        printf("%lu %d\n", (unsigned long)&mutexes[i], counts[i]);
    fflush(stdout);
    atexit(at_exit);
    for (int i = 0; i < 2; i++) {
        void *plugin = dlopen(arguments[count - 1], RTLD_NOW);
        if (!plugin)
            return fputs(dlerror(), stderr), 1;
        dlclose(plugin);
    }
    pthread_key_t key;
    pthread_t other;
    pthread_key_create(&key, at_thread_exit);
    pthread_create(&other, 0, thread, &key);
    pthread_join(other, 0);
    pid_t child = fork();
    if (!child) {
        take(FORKED, 6);
        exit(0); /* and its destructors */
    }
    waitpid(child, 0, 0);
    child = vfork();
    if (!child) {
        take(VFORKED, 3);
        _exit(0);
    }
    waitpid(child, 0, 0);
    return system("true");
}
