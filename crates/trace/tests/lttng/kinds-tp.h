/*
 * Tracepoints of every field kind that LTTng-UST offers: what the tests of tracewing-trace record with lttng
 * and then compare with babeltrace2, line by line.
 */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER kinds

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./kinds-tp.h"

#if !defined(KINDS_TP_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define KINDS_TP_H

#include <lttng/tracepoint.h>
#include <stdint.h>

LTTNG_UST_TRACEPOINT_EVENT(kinds, integers, LTTNG_UST_TP_ARGS(uint64_t, v),
	LTTNG_UST_TP_FIELDS(
		lttng_ust_field_integer(uint8_t, u8, v)
		lttng_ust_field_integer(uint16_t, u16, v)
		lttng_ust_field_integer(uint32_t, u32, v)
		lttng_ust_field_integer(uint64_t, u64, v)
		lttng_ust_field_integer(int8_t, i8, v)
		lttng_ust_field_integer(int16_t, i16, v)
		lttng_ust_field_integer(int32_t, i32, v)
		lttng_ust_field_integer(int64_t, i64, v)
		lttng_ust_field_integer_hex(uint8_t, h8, v)
		lttng_ust_field_integer_hex(uint64_t, h64, v)
		lttng_ust_field_integer_hex(int8_t, hi8, v)
		lttng_ust_field_integer_hex(int32_t, hi32, v)
		lttng_ust_field_integer_hex(int64_t, hi64, v)
		lttng_ust_field_integer_network(uint32_t, n32, v)
		lttng_ust_field_integer_network_hex(uint16_t, nh16, v)
		lttng_ust_field_integer(long, keyword_long, v)
	))
LTTNG_UST_TRACEPOINT_LOGLEVEL(kinds, integers, LTTNG_UST_TRACEPOINT_LOGLEVEL_INFO)
LTTNG_UST_TRACEPOINT_MODEL_EMF_URI(kinds, integers, "http://example.com/kinds/integers")

LTTNG_UST_TRACEPOINT_EVENT(kinds, floats, LTTNG_UST_TP_ARGS(float, f, double, d),
	LTTNG_UST_TP_FIELDS(
		lttng_ust_field_float(float, single, f)
		lttng_ust_field_float(double, twice, d)
	))
LTTNG_UST_TRACEPOINT_LOGLEVEL(kinds, floats, LTTNG_UST_TRACEPOINT_LOGLEVEL_EMERG)

LTTNG_UST_TRACEPOINT_EVENT(kinds, strings, LTTNG_UST_TP_ARGS(const char *, s, const char *, sixteen, size_t, len),
	LTTNG_UST_TP_FIELDS(
		lttng_ust_field_string(string, s)
		lttng_ust_field_array_text(char, text, sixteen, 16)
		lttng_ust_field_sequence_text(char, seqtext, s, size_t, len)
	))

LTTNG_UST_TRACEPOINT_EVENT(kinds, arrays, LTTNG_UST_TP_ARGS(int64_t *, a, size_t, len),
	LTTNG_UST_TP_FIELDS(
		lttng_ust_field_array(int64_t, fixed, a, 3)
		lttng_ust_field_array_hex(int64_t, fixedhex, a, 2)
		lttng_ust_field_array(uint8_t, bytes, a, 5)
		lttng_ust_field_sequence(int64_t, seq, a, size_t, len)
		lttng_ust_field_sequence_hex(uint16_t, seqhex, a, uint16_t, len)
		lttng_ust_field_sequence_network(uint32_t, seqnet, a, uint8_t, len)
		lttng_ust_field_integer(int, after, len)
	))
LTTNG_UST_TRACEPOINT_LOGLEVEL(kinds, arrays, LTTNG_UST_TRACEPOINT_LOGLEVEL_DEBUG)

LTTNG_UST_TRACEPOINT_ENUM(kinds, colour,
	LTTNG_UST_TP_ENUM_VALUES(
		lttng_ust_field_enum_value("red", 0)
		lttng_ust_field_enum_range("warm", 1, 4)
		lttng_ust_field_enum_range("cold \"quoted\"", 4, 6)
		lttng_ust_field_enum_auto("automatic")
		lttng_ust_field_enum_value("below", -3)
	))

LTTNG_UST_TRACEPOINT_EVENT(kinds, enums, LTTNG_UST_TP_ARGS(int, v),
	LTTNG_UST_TP_FIELDS(
		lttng_ust_field_enum(kinds, colour, int, colour, v)
		lttng_ust_field_enum(kinds, colour, long, wide, v)
	))

LTTNG_UST_TRACEPOINT_EVENT(kinds, empty, LTTNG_UST_TP_ARGS(),
	LTTNG_UST_TP_FIELDS())

LTTNG_UST_TRACEPOINT_EVENT(kinds, big, LTTNG_UST_TP_ARGS(int, thread, int, round, const char *, text),
	LTTNG_UST_TP_FIELDS(
		lttng_ust_field_integer(int, thread, thread)
		lttng_ust_field_integer(int, round, round)
		lttng_ust_field_string(text, text)
	))

#endif

#include <lttng/tracepoint-event.h>
