#include "kinds.h"

template <class T> inline T through_a_template(T value) {
    TRACEWING_EMIT(words, static_cast<uint64_t>(value), 1);
    return value;
}

int main() {
    emit_all();
    auto lambda = [](int value) {
        TRACEWING_EMIT(words, static_cast<uint64_t>(value), 2);
        return value;
    };
    through_a_template(5);
    through_a_template(6L);
    lambda(7);
    printf("evaluated %d\n", evaluated);
}
