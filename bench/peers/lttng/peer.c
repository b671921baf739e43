/*
 * The LTTng-UST side of `cargo xtask bench record` and `bench trigger`. It obeys the same orders as bench's own worker, one on a line of
 * standard input:
 *
 *   two_u64 COUNT          emits COUNT events; answers with the nanoseconds of CPU time that the loop took
 *   threads COUNT THREADS two_u64
 *                          the same in each of that many threads at once; answers with the CPU time of all
 *   flood MS               emits for that long; answers with the events and the nanoseconds
 *   empty COUNT            a loop of COUNT / 16 turns; answers with the CPU time
 *   site COUNT             the same with sixteen events in each turn; for a program that nobody records
 *   latency COUNT PATH     times COUNT single events, in cycles, as 32-bit words to PATH; answers with the page
 *                          faults of the first event and of the others (and twice -1: system calls are not counted)
 *
 * It ends with its input.
 */
#define _GNU_SOURCE
#define LTTNG_UST_TRACEPOINT_DEFINE
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#include "two-event.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <x86intrin.h>

#define STRIDE 4096
#define MOST_THREADS 1024

static uint64_t now(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (uint64_t) time.tv_sec * 1000000000u + (uint64_t) time.tv_nsec;
}

static uint64_t emit(uint64_t count)
{
	uint64_t begin = now(CLOCK_THREAD_CPUTIME_ID);

	for (uint64_t i = 0; i < count; i++)
		lttng_ust_tracepoint(tracewing_bench, two, i, i ^ begin);
	return now(CLOCK_THREAD_CPUTIME_ID) - begin;
}

#define FOUR(step) step; step; step; step
#define IN_A_ROW(step) do { FOUR(step); FOUR(step); FOUR(step); FOUR(step); } while (0)

static uint64_t empty(uint64_t count)
{
	uint64_t begin = now(CLOCK_THREAD_CPUTIME_ID);

	for (uint64_t i = 0; i < count / 16; i++)
		__asm__ volatile("" : : "r"(i)); /* keeps the loop a loop */
	return now(CLOCK_THREAD_CPUTIME_ID) - begin;
}

static uint64_t sites(uint64_t count)
{
	uint64_t begin = now(CLOCK_THREAD_CPUTIME_ID);

	for (uint64_t i = 0; i < count / 16; i++) {
		__asm__ volatile("" : : "r"(i));
		IN_A_ROW(lttng_ust_tracepoint(tracewing_bench, two, i, i ^ begin));
	}
	return now(CLOCK_THREAD_CPUTIME_ID) - begin;
}

struct thread {
	pthread_t id;
	pthread_barrier_t *start;
	uint64_t count, time;
};

static void *run_thread(void *argument)
{
	struct thread *thread = argument;

	emit(1); /* a thread's first event costs more */
	pthread_barrier_wait(thread->start);
	thread->time = emit(thread->count);
	return NULL;
}

static int threads(uint64_t count, const char *rest)
{
	static struct thread threads[MOST_THREADS];
	pthread_barrier_t start;
	uint64_t time = 0;
	int number = atoi(rest);

	if (number < 1 || number > MOST_THREADS || pthread_barrier_init(&start, NULL, (unsigned) number) != 0)
		return 1;
	for (int i = 0; i < number; i++) {
		threads[i].start = &start;
		threads[i].count = count;
		if (pthread_create(&threads[i].id, NULL, run_thread, &threads[i]) != 0)
			return 1;
	}
	for (int i = 0; i < number; i++) {
		pthread_join(threads[i].id, NULL);
		time += threads[i].time;
	}
	pthread_barrier_destroy(&start);
	printf("%" PRIu64 "\n", time);
	return 0;
}

static int flood(uint64_t milliseconds)
{
	uint64_t begin = now(CLOCK_MONOTONIC), count = 0, passed;

	do {
		emit(STRIDE);
		count += STRIDE;
		passed = now(CLOCK_MONOTONIC) - begin;
	} while (passed < milliseconds * 1000000u);
	printf("%" PRIu64 " %" PRIu64 "\n", count, passed);
	return 0;
}

static long faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_minflt + usage.ru_majflt;
}

static void sample(uint32_t *samples, uint64_t from, uint64_t to)
{
	for (uint64_t i = from; i < to; i++) {
		uint64_t begin;

		_mm_lfence();
		begin = __rdtsc();
		lttng_ust_tracepoint(tracewing_bench, two, i, ~i);
		_mm_lfence();
		samples[i] = (uint32_t) (__rdtsc() - begin);
	}
}

static int latency(uint64_t count, const char *path)
{
	uint32_t *samples = malloc(count * sizeof *samples);
	FILE *file = fopen(path, "wb");
	long first, others;

	if (samples == NULL || file == NULL || count == 0)
		return 1;
	memset(samples, 0xff, count * sizeof *samples); /* so that the pages are there */
	first = faults();
	sample(samples, 0, 1);
	others = faults();
	sample(samples, 1, count);
	printf("%ld -1 %ld -1\n", others - first, faults() - others);
	if (fwrite(samples, sizeof *samples, count, file) != count || fclose(file) != 0)
		return 1;
	free(samples);
	return 0;
}

int main(void)
{
	char line[4352], name[64], rest[4096];
	uint64_t number;

	while (fgets(line, sizeof line, stdin) != NULL) {
		int failed = 1;

		rest[0] = '\0';
		if (sscanf(line, "%63s %" SCNu64 " %4095[^\n]", name, &number, rest) < 2)
			failed = 1;
		else if (strcmp(name, "two_u64") == 0)
			failed = printf("%" PRIu64 "\n", emit(number)) < 0;
		else if (strcmp(name, "empty") == 0)
			failed = printf("%" PRIu64 "\n", empty(number)) < 0;
		else if (strcmp(name, "site") == 0)
			failed = printf("%" PRIu64 "\n", sites(number)) < 0;
		else if (strcmp(name, "threads") == 0)
			failed = threads(number, rest);
		else if (strcmp(name, "flood") == 0)
			failed = flood(number);
		else if (strcmp(name, "latency") == 0)
			failed = latency(number, rest);
		if (failed) {
			fprintf(stderr, "peer: cannot do `%s`\n", line);
			return 1;
		}
		fflush(stdout);
	}
	return 0;
}
