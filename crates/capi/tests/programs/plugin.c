/* A library that is loaded while its program is being recorded. */
#include <tracewing.h>

TRACEWING_EVENT(loaded, "plugin:loaded", (int, times))

void hello(int times);

void hello(int times) {
    TRACEWING_EMIT(loaded, times);
}
