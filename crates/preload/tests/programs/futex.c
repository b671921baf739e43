/* A thread waits for a futex whose address is printed, is interrupted by a signal that has a handler, and is killed while it waits on. */
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static int word;

static void *waits(void *none)
{
    syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, 0, 0, 0);
    return none;
}

static void handles(int number) { (void)number; }

int main(void)
{
    pthread_t thread;
    struct sigaction action = { .sa_handler = handles, .sa_flags = SA_RESTART };
    sigaction(SIGUSR1, &action, 0);
    printf("%p\n", (void *)&word);
    fflush(stdout);
    pthread_create(&thread, 0, waits, 0);
    usleep(50000);
    pthread_kill(thread, SIGUSR1);
    usleep(50000);
    kill(getpid(), SIGKILL);
    pause();
}
