/*
 * The peer's event: two unsigned 64-bit integers, as LTTng-UST declares them. (A file called tracepoint.h would be
 * mistaken for LTTng's own when LTTng's headers include it again.)
 */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER tracewing_bench

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./two-event.h"

#if !defined(TRACEWING_BENCH_TWO_EVENT_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define TRACEWING_BENCH_TWO_EVENT_H

#include <lttng/tracepoint.h>
#include <stdint.h>

LTTNG_UST_TRACEPOINT_EVENT(
	tracewing_bench, two,
	LTTNG_UST_TP_ARGS(uint64_t, first, uint64_t, second),
	LTTNG_UST_TP_FIELDS(
		lttng_ust_field_integer(uint64_t, first, first)
		lttng_ust_field_integer(uint64_t, second, second)
	)
)

#endif

#include <lttng/tracepoint-event.h>
