/* Every type of field, in C and in C++, in inline functions too. */
#include <stdio.h>

#include <tracewing.h>

enum color { RED, GREEN = 3 };
enum balance { DEBT = -7, NOTHING };

TRACEWING_EVENT(kinds, "kinds:all", (char, a), (signed char, b), (unsigned char, c), (short, d), (unsigned short, e), (int, f),
                (unsigned, g), (long, h), (unsigned long long, i), (float, j), (double, k), (bool, l), (enum color, m),
                (enum balance, n), (const void *, o), (const char *, p))
TRACEWING_EVENT_AT(TRACEWING_WARN, texts, "kinds:texts", (const char *, first), (char *, second), (struct tracewing_text, third),
                   (struct tracewing_bytes, fourth), (uint8_t, fifth), (const char *, sixth))
TRACEWING_EVENT(words, "kinds:words", (uint64_t, a), (int64_t, b))
TRACEWING_EVENT(nothing, "kinds:nothing")
TRACEWING_SPAN(outer, "kinds:outer", (int, number))
TRACEWING_SPAN(inner, "kinds:inner")

static inline int twice(int number) {
    TRACEWING_EMIT(words, (uint64_t)number, -(int64_t)number);
    return 2 * number;
}

static int evaluated;

static int count(void) { return ++evaluated; }

static void emit_all(void) {
    char second[] = "zwei";
    static const uint8_t bytes[] = {0, 255, 7};
    struct tracewing_text third = {"dr\303\266lf", 4};
    struct tracewing_bytes fourth = {bytes, sizeof bytes};
    struct tracewing_span begun, within;
    TRACEWING_EMIT(kinds, 'a', -1, 255, -2, 65535, -3, 4000000000u, -4, 18446744073709551615ull, 0.5f, -0.25, true, GREEN, DEBT,
                   (const void *)0x1234, "sixteen");
    TRACEWING_EMIT(texts, NULL, second, third, fourth, 9, "");
    if (twice(21) != 42)
        puts("wrong");
    if (TRACEWING_IS_ON(nothing))
        TRACEWING_EMIT(nothing);
    begun = TRACEWING_SPAN_BEGIN(outer, count());
    within = TRACEWING_SPAN_BEGIN(inner);
    TRACEWING_SPAN_END(inner, within);
    TRACEWING_SPAN_END(outer, begun);
    within = TRACEWING_SPAN_BEGIN_IN(begun.id, inner);
    TRACEWING_SPAN_END(inner, within);
}
