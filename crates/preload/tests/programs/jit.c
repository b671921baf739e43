/* Takes a lock from code that it has made itself, as just-in-time compilers do: with a frame pointer and without, 100 times each, in
 * the same memory, which is given back and mapped anew in between. Prints where that is. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { SIZE = 4096, TIMES = 100 };
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* Each calls the function rdi with rsi, as its argument. */
static const unsigned char with_frame[] = {
    0x55,             /* push rbp */
    0x48, 0x89, 0xe5, /* mov rbp, rsp */
    0x48, 0x89, 0xf8, /* mov rax, rdi */
    0x48, 0x89, 0xf7, /* mov rdi, rsi */
    0xff, 0xd0,       /* call rax */
    0x5d,             /* pop rbp */
    0xc3,             /* ret */
};
static const unsigned char without[] = {
    0x55,                                     /* push rbp */
    0x48, 0xc7, 0xc5, 0xf7, 0xff, 0xff, 0xff, /* mov rbp, -9 */
    0x48, 0x89, 0xf8,                         /* mov rax, rdi */
    0x48, 0x89, 0xf7,                         /* mov rdi, rsi */
    0xff, 0xd0,                               /* call rax */
    0x5d,                                     /* pop rbp */
    0xc3,                                     /* ret */
};

__attribute__((noinline)) static void takes(void *place, const unsigned char *code, int size)
{
    void *made = mmap(place, SIZE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(made, code, size);
    void (*calls)(int (*)(pthread_mutex_t *), pthread_mutex_t *);
    memcpy(&calls, &made, sizeof calls);
    for (int i = 0; i < TIMES; i++) {
        calls(pthread_mutex_lock, &mutex);
        calls(pthread_mutex_unlock, &mutex);
    }
    printf("%p\n", made);
    munmap(made, SIZE);
}

int main(void)
{
    void *place = mmap(0, SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(place, SIZE);
    takes(place, with_frame, sizeof with_frame);
    takes(place, without, sizeof without);
}
