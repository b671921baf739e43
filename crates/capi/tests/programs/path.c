/* A function with an event in it, and the same without. */
#include <tracewing.h>

TRACEWING_EVENT(multiplied, "path:multiplied", (uint64_t, left), (uint64_t, right))

uint64_t with(uint64_t left, uint64_t right);
uint64_t without(uint64_t left, uint64_t right);

uint64_t with(uint64_t left, uint64_t right) {
    TRACEWING_EMIT(multiplied, left, right);
    return left * right ^ 7;
}

uint64_t without(uint64_t left, uint64_t right) {
    return left * right ^ 7;
}
