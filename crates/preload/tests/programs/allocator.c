/* Brings a malloc of its own that takes a lock, as others' do: it is called before any library is ready, by the loader and by
 * whatever a library does when it is loaded. Prints whether it took the lock a thousand times once main had begun; other
 * threads may do so, too. */
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Alignas(64) unsigned char memory[64 << 20];
static size_t used;
static volatile long taken;

static void *take(size_t size, size_t alignment)
{
    pthread_mutex_lock(&lock);
    taken++;
    size_t at = (used + 16 + alignment - 1) & ~(alignment - 1);
    used = at + size;
    pthread_mutex_unlock(&lock);
    memcpy(memory + at - sizeof size, &size, sizeof size);
    return memory + at;
}

void *malloc(size_t size) { return take(size, 16); }
void *calloc(size_t count, size_t size) { return memset(malloc(count * size), 0, count * size); }
void *memalign(size_t alignment, size_t size) { return take(size, alignment); }
void *aligned_alloc(size_t alignment, size_t size) { return take(size, alignment); }
void free(void *memory) { (void)memory; }

void *realloc(void *before, size_t size)
{
    size_t old = 0;
    if (before)
        memcpy(&old, (unsigned char *)before - sizeof old, sizeof old);
    return before ? memcpy(malloc(size), before, old < size ? old : size) : malloc(size);
}

int main(void)
{
    long before = taken;
    for (int i = 0; i < 1000; i++) {
        void *volatile memory = malloc(100);
        free(memory);
    }
    puts(taken - before >= 1000 ? "1000 and more" : "fewer");
}
