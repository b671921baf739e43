/* Emits the same classes at two places each, three times. */

#include "tracewing.h"

TRACEWING_EVENT(number, "places:number", (uint64_t, value))
TRACEWING_EVENT(text, "places:text", (const char *, value))
TRACEWING_EVENT(none, "places:none")

__attribute__((noinline)) static void first(uint64_t value) {
    TRACEWING_EMIT(number, value);
    TRACEWING_EMIT(text, "first");
    TRACEWING_EMIT(none);
}

__attribute__((noinline)) static void second(uint64_t value) {
    TRACEWING_EMIT(none);
    TRACEWING_EMIT(text, "second");
    TRACEWING_EMIT(number, value);
}

int main(void) {
    for (uint64_t value = 0; value < 3; value++) {
        first(value);
        second(value);
    }
    return 0;
}
