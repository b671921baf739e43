/* Clerks that keep their own log: each line is an operation, what it was done to, and four stamps of CLOCK_MONOTONIC: before and
 * after it began, before and after it ended. What `tracewing` reports of it is between the inner stamps and the outer ones.
 *
 *     tracewing record --clock mono --locks --functions -o trace -- clerks LOG
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <tracewing.h>

#define UNRECORDED __attribute__((no_instrument_function))

TRACEWING_EVENT(request, "clerks:request", (uint64_t, id))
TRACEWING_EVENT(response, "clerks:response", (uint64_t, id))
TRACEWING_SPAN(sale, "clerks:sale", (uint64_t, id))

enum { CLERKS = 4, REQUESTS = 20, NOTES = (11 + CLERKS) * REQUESTS };

struct note {
    const char *operation;
    uint64_t of, stamps[4];
};

/* Has a log of its own, so that no lock is taken for it. */
struct clerk {
    pthread_t thread;
    _Atomic pid_t tid;
    uint64_t number;
    unsigned count;
    struct note notes[NOTES];
};

static struct clerk clerks[CLERKS];
static pthread_mutex_t book = PTHREAD_MUTEX_INITIALIZER;

UNRECORDED static uint64_t clock_of(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

UNRECORDED static uint64_t now(void) {
    return clock_of(CLOCK_MONOTONIC);
}

UNRECORDED static void note(struct clerk *clerk, const char *operation, uint64_t of, uint64_t before_begin, uint64_t after_begin,
                            uint64_t before_end, uint64_t after_end) {
    struct note note = {operation, of, {before_begin, after_begin, before_end, after_end}};
    clerk->notes[clerk->count++] = note;
}

/* Sleeps for `length` ns, and never less. */
UNRECORDED static void sleep_for(struct clerk *clerk, uint64_t length) {
    struct timespec time = {0, (long)length};
    uint64_t before = now();
    clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
    note(clerk, "sleep", (uint64_t)syscall(SYS_gettid), before, before, before + length, now());
}

/* Whether a thread is in a system call for the book: that is the one by which it waits. */
UNRECORDED static int waits_for_book(pid_t tid) {
    char path[64], line[128];
    ssize_t length;
    unsigned long call, address, operation;
    int file;
    snprintf(path, sizeof path, "/proc/self/task/%d/syscall", (int)tid);
    file = open(path, O_RDONLY);
    length = file < 0 ? 0 : read(file, line, sizeof line - 1);
    if (file >= 0)
        close(file);
    line[length > 0 ? length : 0] = 0;
    return sscanf(line, "%lu %lx %lx", &call, &address, &operation) == 3 && call == SYS_futex && address == (unsigned long)&book &&
           (operation & FUTEX_CMD_MASK) == FUTEX_WAIT;
}

/* Looks since when, at the latest, which others have waited. */
UNRECORDED static void look_around(const struct clerk *clerk, uint64_t since[CLERKS]) {
    for (int other = 0; other < CLERKS; other++)
        if (&clerks[other] != clerk && since[other] == 0 && clerks[other].tid != 0 && waits_for_book(clerks[other].tid))
            since[other] = now();
}

/* Has the book for some time, and sleeps meanwhile. Who is seen to wait then, waits until it is given back. */
UNRECORDED static void write_book(struct clerk *clerk) {
    uint64_t asked = now(), got, gives, gave, since[CLERKS] = {0}, of = (uint64_t)(uintptr_t)&book;
    pthread_mutex_lock(&book);
    got = now();
    look_around(clerk, since);
    sleep_for(clerk, 400000);
    look_around(clerk, since);
    gives = now();
    pthread_mutex_unlock(&book);
    gave = now();
    note(clerk, "wait", of, asked, asked, asked, got);
    note(clerk, "hold", of, asked, got, gives, gave);
    for (int other = 0; other < CLERKS; other++)
        if (since[other] != 0)
            note(clerk, "others", of, since[other], since[other], gives, gives);
}

/* Computes, with some microseconds from one system call to the next; gives the stamps inside. */
static void look_up(uint64_t stamps[2]) {
    volatile unsigned step;
    uint64_t until;
    stamps[0] = now();
    until = clock_of(CLOCK_THREAD_CPUTIME_ID) + 150000;
    while (clock_of(CLOCK_THREAD_CPUTIME_ID) < until)
        for (step = 0; step < 3000; step++)
            ;
    stamps[1] = now();
}

/* One request: a user thread that runs twice, and waits between. */
UNRECORDED static void serve(struct clerk *clerk, uint64_t id) {
    uint64_t task, stamps[4], inside[2], before;
    struct tracewing_span span;
    uint64_t began[4] = {now()};
    TRACEWING_EMIT(request, id);
    began[1] = now();
    span = TRACEWING_SPAN_BEGIN(sale, id);
    began[2] = now();
    task = tracewing_user_thread_create("sale", "clerks");

    stamps[0] = now();
    tracewing_user_thread_switch(task, TRACEWING_NONE);
    stamps[1] = now();
    write_book(clerk);
    stamps[2] = now();
    tracewing_user_thread_switch(0, TRACEWING_BLOCKED);
    stamps[3] = now();
    note(clerk, "poll", task, stamps[0], stamps[1], stamps[2], stamps[3]);

    sleep_for(clerk, 1000000);
    tracewing_user_thread_wake(task);

    stamps[0] = now();
    tracewing_user_thread_switch(task, TRACEWING_NONE);
    stamps[1] = now();
    before = now();
    look_up(inside);
    note(clerk, "look_up", 0, before, inside[0], inside[1], now());
    stamps[2] = now();
    tracewing_user_thread_exit(task, TRACEWING_COMPLETED);
    tracewing_user_thread_switch(0, TRACEWING_ENDED);
    stamps[3] = now();
    note(clerk, "poll", task, stamps[0], stamps[1], stamps[2], stamps[3]);

    began[3] = now();
    TRACEWING_SPAN_END(sale, span);
    note(clerk, "sale", id, began[1], began[2], began[3], now());
    began[3] = now();
    TRACEWING_EMIT(response, id);
    note(clerk, "request", id, began[0], began[1], began[3], now());
}

UNRECORDED static void *work(void *argument) {
    struct clerk *clerk = argument;
    uint64_t begin = clock_of(CLOCK_THREAD_CPUTIME_ID), began = now(), tid = (uint64_t)syscall(SYS_gettid), request;
    clerk->tid = (pid_t)tid;
    for (request = 0; request < REQUESTS; request++)
        serve(clerk, clerk->number * REQUESTS + request);
    note(clerk, "thread", tid, began, began, now(), now());
    note(clerk, "cpu", tid, begin, begin, clock_of(CLOCK_THREAD_CPUTIME_ID), clock_of(CLOCK_THREAD_CPUTIME_ID));
    return NULL;
}

UNRECORDED int main(int argc, char **argv) {
    FILE *log = fopen(argv[argc - 1], "w");
    for (uint64_t number = 0; number < CLERKS; number++) {
        clerks[number].number = number;
        pthread_create(&clerks[number].thread, NULL, work, &clerks[number]);
    }
    for (struct clerk *clerk = clerks; clerk < clerks + CLERKS; clerk++) {
        pthread_join(clerk->thread, NULL);
        for (struct note *note = clerk->notes; note < clerk->notes + clerk->count; note++)
            fprintf(log, "%s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", note->operation, note->of, note->stamps[0],
                    note->stamps[1], note->stamps[2], note->stamps[3]);
    }
    return fclose(log);
}
