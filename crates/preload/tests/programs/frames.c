/* Takes a lock from functions that have frame pointers but no tables, to be built so; between them is one of the C library's,
 * which has tables. Then from a function that has neither, and leaves all sorts of numbers in the register. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#define OWN_FRAME __attribute__((noinline, noclone))

enum { SIZE = 1 << 18 };
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static ucontext_t first, other;
static unsigned char *memory;
static volatile int sorted;

OWN_FRAME void takes(void)
{
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
}

void wild(const void *frame_pointer);
__asm__(".pushsection .text\n"
        ".type wild, @function\n"
        "wild:\n"
        "    push %rbp\n"
        "    mov %rdi, %rbp\n"
        "    call takes\n"
        "    pop %rbp\n"
        "    ret\n"
        ".size wild, . - wild\n"
        ".popsection\n");

OWN_FRAME static int compares(const void *one, const void *two)
{
    takes();
    return *(const int *)one - *(const int *)two;
}

OWN_FRAME static void sorts(void)
{
    int numbers[] = {2, 1};
    qsort(numbers, 2, sizeof *numbers, compares);
    sorted += numbers[0];
}

OWN_FRAME static void *in_thread(void *argument)
{
    sorts();
    sorted++;
    return argument;
}

/* Between this stack and the thread's own data is memory that cannot be read. */
static void on_stack(void)
{
    wild(memory + SIZE);
    wild(memory + SIZE - 8);
}

int main(void)
{
    takes();
    sorts();
    pthread_t thread;
    pthread_create(&thread, 0, in_thread, 0);
    pthread_join(thread, 0);

    const void *volatile own[2] = {0, 0};
    own[0] = (const void *)own;
    wild(0);
    wild((void *)1);
    wild((void *)-8);
    wild((void *)(1L << 62));
    wild((const unsigned char *)own + 1);
    wild((const void *)own);

    memory = mmap(0, 2 * SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(memory, SIZE, PROT_READ | PROT_WRITE);
    getcontext(&other);
    other.uc_stack.ss_sp = memory;
    other.uc_stack.ss_size = SIZE;
    other.uc_link = &first;
    makecontext(&other, on_stack, 0);
    swapcontext(&first, &other);
    puts("done");
}
