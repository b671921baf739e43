/* Emits, gives up the clock, and emits again. */
#define _GNU_SOURCE
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <tracewing.h>

TRACEWING_EVENT(step, "strict:step", (int, number))

int main(void) {
    TRACEWING_EMIT(step, 1);
    tracewing_before_sandbox();
    if (prctl(PR_SET_SECCOMP, 1 /* SECCOMP_MODE_STRICT */, 0, 0, 0))
        return 1;
    TRACEWING_EMIT(step, 2);
    syscall(SYS_exit, 0); /* The C library's way out makes another call. */
    return 1;
}
