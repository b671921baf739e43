//! [`cold`](crate::cold) as an ordinary call: where sites are compiled out, and on processors other than x86-64.

/// Runs `run`, which should be what is done behind a site that is on, out of the way.
#[cold]
#[inline(never)]
pub fn cold<F: FnOnce()>(run: F) {
    run();
}
