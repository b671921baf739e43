/*
 * Emits every tracepoint of kinds-tp.h from several threads.
 *
 * Usage: kinds THREADS ROUNDS [big]: each thread emits ROUNDS rounds of all kinds, or, with `big`, ROUNDS
 * events of 600 bytes as fast as it can, which overflows small sub-buffers.
 */
#include "kinds-tp.h"
#include <lttng/tracef.h>
#include <lttng/tracelog.h>

#include <float.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static int rounds, big;

static const double reals[] = {
	0.0, -0.0, 1.0, -1.5, 0.1, 100000.0, 999999.5, 1e6, 1234567.0, 1e15, 1e16, 1e17, 1e-4, 1e-5, 0.00012345678,
	1e100, 1e-100, DBL_MAX, DBL_MIN, 5e-324, INFINITY, -INFINITY, NAN, 123456.5, 0.30000000000000004, 2.5, 3.5,
};

static const char *texts[] = {
	"", "plain", "two words", "quote \" and ' and \\ and ?", "tab\tnewline\nreturn\r", "\a\b\f\v\033\x01\x7f",
	"\xc3\xa4\xc3\xb6 \xe2\x82\xac \xf0\x9f\x98\x80", "invalid \xff\xfe utf8", "percent %d {brace}",
};

static const uint64_t values[] = {
	0, 1, 7, 9, 10, 99, 127, 128, 255, 256, 32767, 32768, 65535, 65536, 2147483647ull, 2147483648ull, 4294967295ull,
	4294967296ull, 9223372036854775807ull, 9223372036854775808ull, 18446744073709551615ull, 18446744073709551488ull,
};

static void *emit(void *arg)
{
	int thread = (int)(long)arg;
	char text[600];

	memset(text, 'a' + thread % 26, sizeof text - 1);
	text[sizeof text - 1] = 0;
	for (int round = 0; round < rounds; round++) {
		if (big) {
			lttng_ust_tracepoint(kinds, big, thread, round, text);
			continue;
		}
		for (size_t i = 0; i < sizeof values / sizeof *values; i++)
			lttng_ust_tracepoint(kinds, integers, values[i]);
		for (size_t i = 0; i < sizeof reals / sizeof *reals; i++)
			lttng_ust_tracepoint(kinds, floats, (float)reals[i], reals[i]);
		for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
			char sixteen[16] = { 0 };

			strncpy(sixteen, texts[i], sizeof sixteen);
			lttng_ust_tracepoint(kinds, strings, texts[i], sixteen, strlen(texts[i]));
		}
		for (size_t len = 0; len < 5; len++) {
			int64_t numbers[8] = { -1, 2, INT64_MIN, 40000000000, 5, -6, 7, 8 };

			lttng_ust_tracepoint(kinds, arrays, numbers, len);
		}
		for (int v = -5; v < 12; v++)
			lttng_ust_tracepoint(kinds, enums, v);
		lttng_ust_tracepoint(kinds, empty);
		lttng_ust_tracef("thread %d in round %d", thread, round);
		lttng_ust_tracelog(LTTNG_UST_TRACEPOINT_LOGLEVEL_WARNING, "thread %d warns", thread);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[64];
	int count = argc > 1 ? atoi(argv[1]) : 1;

	rounds = argc > 2 ? atoi(argv[2]) : 1;
	big = argc > 3;
	if (count > 64)
		count = 64;
	for (int i = 0; i < count; i++)
		pthread_create(&threads[i], NULL, emit, (void *)(long)i);
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
