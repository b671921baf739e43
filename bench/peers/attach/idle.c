/*
 * The program of `cargo xtask bench attach`, built three times: plain, with tracewing (-DTRACEWING) and with
 * LTTng-UST (-DLTTNG). It waits for the end of its input and, with the argument `emit`, does something each
 * millisecond meanwhile: an event where it has such.
 */
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#if defined(TRACEWING)
#include <tracewing.h>
TRACEWING_EVENT(turn, "bench_attach:turn", (uint64_t, number))
#define EMIT(number) TRACEWING_EMIT(turn, number)
#elif defined(LTTNG)
#define LTTNG_UST_TRACEPOINT_DEFINE
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#include "two-event.h"
#define EMIT(number) lttng_ust_tracepoint(tracewing_bench, two, number, number)
#else
#define EMIT(number) ((void) (number))
#endif

int main(int count, char **arguments)
{
	int emits = count > 1 && strcmp(arguments[1], "emit") == 0;
	struct pollfd input = { .fd = 0, .events = POLLIN };
	char byte;

	for (uint64_t number = 0;; number++) {
		if (poll(&input, 1, emits ? 1 : -1) > 0 && read(0, &byte, 1) <= 0)
			return 0;
		if (emits)
			EMIT(number);
	}
}
