/*
 * The LTTng-UST side of `cargo xtask bench record`. It obeys the same protocol as bench's own worker: a line
 * `two_u64 COUNT` on standard input means to emit COUNT events in a loop; the answer is a line with the nanoseconds
 * of CPU time that the loop took. It ends with its input.
 */
#define LTTNG_UST_TRACEPOINT_DEFINE
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#include "two-event.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (uint64_t) time.tv_sec * 1000000000u + (uint64_t) time.tv_nsec;
}

int main(void)
{
	char variant[64];
	uint64_t count;

	while (scanf("%63s %" SCNu64, variant, &count) == 2) {
		uint64_t begin, end;

		if (strcmp(variant, "two_u64") != 0) {
			fprintf(stderr, "peer: unknown event `%s`\n", variant);
			return 1;
		}
		begin = now();
		for (uint64_t i = 0; i < count; i++) {
			lttng_ust_tracepoint(tracewing_bench, two, i, i ^ begin);
		}
		end = now();
		printf("%" PRIu64 "\n", end - begin);
		fflush(stdout);
	}
	return 0;
}
