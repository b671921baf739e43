//! Threads that share work. The system may refuse them (`ulimit -u`, a cgroup's limit, memory): then fewer do
//! it.

use std::thread::{Builder, Scope};

/// Starts a thread for each of `works`, up to the first that the system refuses: gives how many there are.
pub(crate) fn start<'s, W: FnOnce() + Send + 's>(
    scope: &'s Scope<'s, '_>,
    new: fn() -> Builder,
    works: impl IntoIterator<Item = W>,
) -> usize {
    works.into_iter().map_while(|work| new().spawn_scoped(scope, work).ok()).count()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::iter::repeat_n;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    /// Makes a thread that the system refuses: no address space has room for such a stack.
    pub(crate) fn refused() -> Builder {
        Builder::new().stack_size(1 << 60)
    }

    #[test]
    fn threads_that_the_system_refuses_are_done_without() {
        let done = AtomicUsize::new(0);
        let work = || _ = done.fetch_add(1, Ordering::Relaxed);
        let started = thread::scope(|scope| {
            [start(scope, refused, repeat_n(&work, 2)), start(scope, Builder::new, repeat_n(&work, 2))]
        });
        assert_eq!((started, done.into_inner()), ([0, 2], 2));
    }
}
