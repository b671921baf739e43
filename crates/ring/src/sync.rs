//! Atomic integers, fences and cells as the processor has them, or as loom does: with `--cfg loom` the
//! checker runs this crate's own code on them (see [`tracewing_abi::atomic`]).

pub(crate) use tracewing_abi::atomic;
pub(crate) use tracewing_abi::atomic::{AtomicU32, AtomicU64, Ordering, fence};

#[cfg(loom)]
pub(crate) use loom::cell::UnsafeCell;
#[cfg(loom)]
pub(crate) use loom::sync::Mutex;
#[cfg(all(feature = "model", not(loom)))]
pub(crate) use std::sync::Mutex;

/// A cell with loom's interface.
#[cfg(not(loom))]
#[derive(Debug)]
pub(crate) struct UnsafeCell<T>(core::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T> UnsafeCell<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(core::cell::UnsafeCell::new(value))
    }

    /// Runs `use_it` on the value's address, for reading.
    pub(crate) fn with<R>(&self, use_it: impl FnOnce(*const T) -> R) -> R {
        use_it(self.0.get())
    }

    /// Runs `use_it` on the value's address, for writing.
    pub(crate) fn with_mut<R>(&self, use_it: impl FnOnce(*mut T) -> R) -> R {
        use_it(self.0.get())
    }
}
