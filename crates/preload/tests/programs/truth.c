/* Takes and gives back locks of all kinds, with computed waits, holds and nesting, and prints what it did:
 *
 *     TID OPERATION LOCK BEFORE AFTER RESULT WAITED OWNER LINE
 *
 * a line per call, in each thread's order; times in ns of CLOCK_MONOTONIC around the call; WAITED 1 or 0 where that is
 * certain, else -1; OWNER the thread that has the lock where the call has to wait for it, else -1; LINE of this file. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MANY = 500, HOLD_NS = 2000000, MOST = 40000 };

static struct {
    pid_t tid;
    const char *operation;
    void *lock;
    long before, after;
    int result, waited, owner, line;
} records[MOST];
static atomic_int count;

static long now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000L + t.tv_nsec;
}

static void keep(const char *operation, void *lock, long before, long after, int result, int waited, int owner, int line)
{
    int at = count++;
    if (at >= MOST)
        abort();
    records[at].tid = gettid();
    records[at].operation = operation;
    records[at].lock = lock;
    records[at].before = before;
    records[at].after = after;
    records[at].result = result;
    records[at].waited = waited;
    records[at].owner = owner;
    records[at].line = line;
}

#define TOLD(operation, lock, waited, owner, call)                                    \
    do {                                                                              \
        long before = now();                                                          \
        int result = (call);                                                          \
        long after = now();                                                           \
        keep(operation, lock, before, after, result, waited, owner, __LINE__);        \
    } while (0)
/* For functions that answer in errno, which must stay as it was where all is well. */
#define TOLD_ERRNO(operation, lock, waited, call)                                     \
    do {                                                                              \
        errno = 77;                                                                   \
        long before = now();                                                          \
        int failed = (call);                                                          \
        long after = now();                                                           \
        if (!failed && errno != 77)                                                   \
            abort();                                                                  \
        keep(operation, lock, before, after, failed ? errno : 0, waited, -1, __LINE__); \
    } while (0)

static void print(void)
{
    for (int i = 0; i < count; i++)
        printf("%d %s %lu %ld %ld %d %d %d %d\n", records[i].tid, records[i].operation, (unsigned long)records[i].lock,
               records[i].before, records[i].after, records[i].result, records[i].waited, records[i].owner,
               records[i].line);
    fflush(stdout);
}

static void pause_ns(long ns)
{
    struct timespec t = { 0, ns };
    while (nanosleep(&t, &t))
        ;
}

static struct timespec soon(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    t.tv_nsec += HOLD_NS;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return t;
}

static void mutexes(void)
{
    pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = a, c = a;
    for (int i = 0; i < MANY; i++) {
        TOLD("mutex", &a, 0, -1, pthread_mutex_lock(&a));
        TOLD("unlock", &a, 0, -1, pthread_mutex_unlock(&a));
    }
    /* Three deep, given back in another order. */
    for (int i = 0; i < MANY; i++) {
        TOLD("mutex", &a, 0, -1, pthread_mutex_lock(&a));
        TOLD("mutex", &b, 0, -1, pthread_mutex_trylock(&b));
        TOLD("mutex", &c, 0, -1, pthread_mutex_lock(&c));
        TOLD("unlock", &b, 0, -1, pthread_mutex_unlock(&b));
        TOLD("unlock", &c, 0, -1, pthread_mutex_unlock(&c));
        TOLD("unlock", &a, 0, -1, pthread_mutex_unlock(&a));
    }
    TOLD("mutex", &a, 0, -1, pthread_mutex_lock(&a));
    pause_ns(HOLD_NS);
    TOLD("trymutex", &a, 1, -1, pthread_mutex_trylock(&a));
    struct timespec until = soon(CLOCK_REALTIME);
    TOLD("mutex", &a, 1, gettid(), pthread_mutex_timedlock(&a, &until));
    until = soon(CLOCK_MONOTONIC);
    TOLD("mutex", &a, 1, gettid(), pthread_mutex_clocklock(&a, CLOCK_MONOTONIC, &until));
    for (int i = 0; i < MANY; i++)
        TOLD("mutex", &a, 1, gettid(), pthread_mutex_clocklock(&a, CLOCK_MONOTONIC, &until)); /* over already */
    TOLD("unlock", &a, 0, -1, pthread_mutex_unlock(&a));
    until = soon(CLOCK_REALTIME);
    TOLD("mutex", &a, 0, -1, pthread_mutex_timedlock(&a, &until));
    TOLD("unlock", &a, 0, -1, pthread_mutex_unlock(&a));

    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&a, &attributes);
    for (int i = 0; i < 3; i++)
        TOLD("mutex", &a, 0, -1, pthread_mutex_lock(&a));
    for (int i = 0; i < 3; i++)
        TOLD("unlock", &a, 0, -1, pthread_mutex_unlock(&a));
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&b, &attributes);
    TOLD("mutex", &b, 0, -1, pthread_mutex_lock(&b));
    TOLD("mutex", &b, 1, gettid(), pthread_mutex_lock(&b));
    TOLD("unlock", &b, 0, -1, pthread_mutex_unlock(&b));
    TOLD("unlock", &b, 0, -1, pthread_mutex_unlock(&b));
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_NORMAL);
    pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(&c, &attributes);
    TOLD("mutex", &c, 0, -1, pthread_mutex_lock(&c));
    TOLD("unlock", &c, 0, -1, pthread_mutex_unlock(&c));
}

static void *die_with(void *mutex)
{
    TOLD("mutex", mutex, 0, -1, pthread_mutex_lock(mutex));
    return 0;
}

static void robust(void)
{
    pthread_mutexattr_t attributes;
    pthread_mutex_t a;
    pthread_t thread;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&a, &attributes);
    pthread_create(&thread, 0, die_with, &a);
    pthread_join(thread, 0);
    TOLD("mutex", &a, 0, -1, pthread_mutex_lock(&a));
    TOLD("unlock", &a, 0, -1, pthread_mutex_unlock(&a)); /* not made consistent: */
    TOLD("mutex", &a, 0, -1, pthread_mutex_lock(&a));
    TOLD("mutex", &a, 0, -1, pthread_mutex_lock(&a));
}

static void rwlocks(void)
{
    pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER;
    struct timespec until = soon(CLOCK_REALTIME);
    TOLD("read", &l, 0, -1, pthread_rwlock_rdlock(&l));
    TOLD("read", &l, 0, -1, pthread_rwlock_tryrdlock(&l));
    TOLD("read", &l, 0, -1, pthread_rwlock_timedrdlock(&l, &until));
    TOLD("trywrite", &l, 1, -1, pthread_rwlock_trywrlock(&l));
    TOLD("write", &l, 1, 0, pthread_rwlock_timedwrlock(&l, &until));
    for (int i = 0; i < 3; i++)
        TOLD("unlock", &l, 0, -1, pthread_rwlock_unlock(&l));
    for (int i = 0; i < MANY; i++) {
        TOLD("write", &l, 0, -1, pthread_rwlock_wrlock(&l));
        TOLD("unlock", &l, 0, -1, pthread_rwlock_unlock(&l));
    }
    TOLD("write", &l, 0, -1, pthread_rwlock_trywrlock(&l));
    TOLD("tryread", &l, 1, -1, pthread_rwlock_tryrdlock(&l));
    until = soon(CLOCK_MONOTONIC);
    TOLD("read", &l, 1, gettid(), pthread_rwlock_clockrdlock(&l, CLOCK_MONOTONIC, &until));
    TOLD("write", &l, 1, gettid(), pthread_rwlock_wrlock(&l)); /* EDEADLK */
    TOLD("unlock", &l, 0, -1, pthread_rwlock_unlock(&l));
    TOLD("write", &l, 0, -1, pthread_rwlock_clockwrlock(&l, CLOCK_MONOTONIC, &until));
    TOLD("unlock", &l, 0, -1, pthread_rwlock_unlock(&l));
}

static void others(void)
{
    pthread_spinlock_t spin;
    pthread_spin_init(&spin, 0);
    TOLD("spin", (void *)&spin, 0, -1, pthread_spin_lock(&spin));
    TOLD("tryspin", (void *)&spin, 1, -1, pthread_spin_trylock(&spin));
    TOLD("unlock", (void *)&spin, 0, -1, pthread_spin_unlock(&spin));
    TOLD("spin", (void *)&spin, 0, -1, pthread_spin_trylock(&spin));
    TOLD("unlock", (void *)&spin, 0, -1, pthread_spin_unlock(&spin));

    sem_t permits;
    sem_init(&permits, 0, 3);
    struct timespec until = soon(CLOCK_REALTIME);
    TOLD_ERRNO("semaphore", &permits, 0, sem_wait(&permits));
    TOLD_ERRNO("semaphore", &permits, 0, sem_trywait(&permits));
    TOLD_ERRNO("semaphore", &permits, 0, sem_timedwait(&permits, &until));
    TOLD_ERRNO("trysemaphore", &permits, 1, sem_trywait(&permits));
    TOLD_ERRNO("semaphore", &permits, 1, sem_timedwait(&permits, &until));
    until = soon(CLOCK_MONOTONIC);
    TOLD_ERRNO("semaphore", &permits, 1, sem_clockwait(&permits, CLOCK_MONOTONIC, &until));
    TOLD_ERRNO("post", &permits, 0, sem_post(&permits));

    pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    TOLD("mutex", &m, 0, -1, pthread_mutex_lock(&m));
    until = soon(CLOCK_REALTIME);
    TOLD("condition", &condition, 1, -1, pthread_cond_timedwait(&condition, &m, &until));
    until = soon(CLOCK_MONOTONIC);
    TOLD("condition", &condition, 1, -1, pthread_cond_clockwait(&condition, &m, CLOCK_MONOTONIC, &until));
    TOLD("signal", &condition, 0, -1, pthread_cond_signal(&condition));
    TOLD("broadcast", &condition, 1, -1, pthread_cond_broadcast(&condition));
    TOLD("unlock", &m, 0, -1, pthread_mutex_unlock(&m));

    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, 0, 1);
    TOLD("barrier", &barrier, 0, -1, pthread_barrier_wait(&barrier));
}

/* Two threads: the first has a lock, the second waits for it. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static sem_t semaphore;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static atomic_int turn, first, second;

/* Waits until thread `tid` sleeps in the kernel. */
static void until_asleep(pid_t tid)
{
    char path[64], line[256];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
    for (char state = 'R'; state != 'S';) {
        FILE *file = fopen(path, "r");
        if (!file || !fgets(line, sizeof line, file))
            abort();
        fclose(file);
        state = strrchr(line, ')')[2];
    }
}

static void wait_for(int value)
{
    while (turn != value)
        ;
}

/* The second thread has announced itself, and sleeps. */
static void hold(int value)
{
    wait_for(value);
    until_asleep(second);
    pause_ns(HOLD_NS);
}

static void *holder(void *none)
{
    first = gettid();
    while (!second)
        ;
    TOLD("mutex", &mutex, 0, -1, pthread_mutex_lock(&mutex));
    turn = 1;
    hold(2);
    TOLD("unlock", &mutex, 0, -1, pthread_mutex_unlock(&mutex));
    wait_for(3);
    TOLD("write", &rwlock, 0, -1, pthread_rwlock_wrlock(&rwlock));
    turn = 4;
    hold(5);
    TOLD("unlock", &rwlock, 0, -1, pthread_rwlock_unlock(&rwlock));
    wait_for(6);
    hold(6);
    TOLD_ERRNO("post", &semaphore, 0, sem_post(&semaphore));
    wait_for(7);
    TOLD("spin", (void *)&spin, 0, -1, pthread_spin_lock(&spin));
    turn = 8;
    wait_for(9);
    pause_ns(HOLD_NS);
    TOLD("unlock", (void *)&spin, 0, -1, pthread_spin_unlock(&spin));
    wait_for(10);
    hold(10);
    TOLD("mutex", &mutex, 0, -1, pthread_mutex_lock(&mutex));
    TOLD("signal", &condition, 0, -1, pthread_cond_signal(&condition));
    TOLD("unlock", &mutex, 0, -1, pthread_mutex_unlock(&mutex));
    wait_for(11);
    hold(11);
    TOLD("barrier", &barrier, -1, -1, pthread_barrier_wait(&barrier));
    return none;
}

static void *waiter(void *none)
{
    second = gettid();
    wait_for(1);
    turn = 2;
    TOLD("mutex", &mutex, 1, first, pthread_mutex_lock(&mutex));
    TOLD("unlock", &mutex, 0, -1, pthread_mutex_unlock(&mutex));
    turn = 3;
    wait_for(4);
    turn = 5;
    TOLD("read", &rwlock, 1, first, pthread_rwlock_rdlock(&rwlock));
    TOLD("unlock", &rwlock, 0, -1, pthread_rwlock_unlock(&rwlock));
    turn = 6;
    TOLD_ERRNO("semaphore", &semaphore, 1, sem_wait(&semaphore));
    turn = 7;
    wait_for(8);
    turn = 9;
    TOLD("spin", (void *)&spin, -1, 0, pthread_spin_lock(&spin));
    TOLD("unlock", (void *)&spin, 0, -1, pthread_spin_unlock(&spin));
    TOLD("mutex", &mutex, 0, -1, pthread_mutex_lock(&mutex));
    turn = 10;
    TOLD("condition", &condition, 1, -1, pthread_cond_wait(&condition, &mutex));
    TOLD("unlock", &mutex, 0, -1, pthread_mutex_unlock(&mutex));
    turn = 11;
    TOLD("barrier", &barrier, -1, -1, pthread_barrier_wait(&barrier));
    return none;
}

static void two_threads(void)
{
    pthread_t threads[2];
    pthread_spin_init(&spin, 0);
    sem_init(&semaphore, 0, 0);
    pthread_barrier_init(&barrier, 0, 2);
    pthread_create(&threads[0], 0, holder, 0);
    pthread_create(&threads[1], 0, waiter, 0);
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
}

/* Threads that are cancelled while they wait, and one that is where there is nothing to wait for. */
static void unlock(void *locked)
{
    TOLD("unlock", locked, 0, -1, pthread_mutex_unlock(locked));
}

static void *cancelled(void *locked)
{
    second = gettid();
    TOLD("mutex", locked, 0, -1, pthread_mutex_lock(locked));
    pthread_cleanup_push(unlock, locked);
    long before = now();
    turn = 20;
    keep("cancelled", &condition, before, before + HOLD_NS * 1000L, 0, 1, -1, __LINE__);
    pthread_cond_wait(&condition, locked);
    pthread_cleanup_pop(1);
    abort();
}

static void *cancelled_without_waiting(void *none)
{
    pthread_cancel(pthread_self());
    sem_wait(&semaphore); /* has a permit: no events, for it does not get there */
    abort();
    return none;
}

static void cancelling(void)
{
    pthread_t thread;
    void *result;
    pthread_create(&thread, 0, cancelled, &mutex);
    hold(20);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    if (result != PTHREAD_CANCELED)
        abort();
    sem_post(&semaphore);
    keep("post", &semaphore, now() - HOLD_NS * 1000L, now(), 0, 0, -1, __LINE__);
    pthread_create(&thread, 0, cancelled_without_waiting, 0);
    pthread_join(thread, &result);
    if (result != PTHREAD_CANCELED)
        abort();
}

/* While a thread, and the process, ends. */
static pthread_key_t key;

static void at_end(void *locked)
{
    TOLD("mutex", locked, 0, -1, pthread_mutex_lock(locked));
    TOLD("unlock", locked, 0, -1, pthread_mutex_unlock(locked));
}

static void *ends(void *locked)
{
    pthread_setspecific(key, locked);
    return 0;
}

__attribute__((destructor)) static void ended(void)
{
    at_end(&mutex);
    print();
}

/* Before any library is ready: such calls only have to work. */
static pthread_mutex_t early = PTHREAD_MUTEX_INITIALIZER;

static void before_all(void)
{
    pthread_mutex_lock(&early);
    pthread_mutex_unlock(&early);
}

__attribute__((section(".preinit_array"), used)) static void (*before_all_libraries)(void) = before_all;

int main(void)
{
    mutexes();
    robust();
    rwlocks();
    others();
    two_threads();
    cancelling();
    pthread_t thread;
    pthread_key_create(&key, at_end);
    pthread_create(&thread, 0, ends, &mutex);
    pthread_join(thread, 0);
    if (!fork()) {
        count = 0;
        at_end(&mutex);
        at_end(&early);
        print();
        _exit(0);
    }
    wait(0);
    at_end(&mutex);
}
