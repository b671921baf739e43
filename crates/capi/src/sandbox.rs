//! Programs that give up the clock.

/// As [`tracewing::before_sandbox`].
#[unsafe(no_mangle)]
extern "C" fn tracewing_before_sandbox() {
    tracewing::before_sandbox();
}
