//! The two instructions in which the protocols `Smp` and `Local` differ.

use crate::sync::AtomicU64;
use crate::sync::Ordering::*;

/// How writers of a buffer change its words.
pub trait Access {
    /// Whether another CPU may have moved the write count.
    const IS_SHARED: bool;

    /// Replaces `old` by `new` if the word is still `old` (the paper's LCAS). Release: every read and write
    /// that the caller did before is complete for a thread that loads the new value with acquire, as the
    /// caller loaded the old one.
    fn replace(word: &AtomicU64, old: u64, new: u64) -> bool;

    /// Adds to a word and returns the sum (the paper's localAdd). Release, as `replace`; acquire, for the
    /// same guarantee from the additions before.
    fn add(word: &AtomicU64, by: u64) -> u64;
}

/// Threads on any CPU may write to a buffer at the same time: locked instructions.
#[derive(Debug, Clone, Copy)]
pub enum Smp {}

/// All writers of a buffer run on one CPU and nest: each instruction is atomic with respect to them, and the
/// reader only loads these words. On x86-64 the lock prefix is left out; other processors have no cheaper
/// form.
#[derive(Debug, Clone, Copy)]
pub enum Local {}

impl Access for Smp {
    const IS_SHARED: bool = true;

    #[inline(always)]
    fn replace(word: &AtomicU64, old: u64, new: u64) -> bool {
        // Partners: the loads of `head` in `try_reserve_slot`, `force_switch` and `Reader::ahead`. Two things
        // are complete by then: the caller's look at the clock, and the reader's last access to the
        // sub-buffer, if the caller found it released.
        word.compare_exchange(old, new, Release, Relaxed).is_ok()
    }

    #[inline(always)]
    fn add(word: &AtomicU64, by: u64) -> u64 {
        // Release: partner is the load in `Reader::ahead`. Acquire: the thread that stores the commit seq
        // vouches for the others, so its later load of `head` misses none of their reservations.
        word.fetch_add(by, AcqRel).wrapping_add(by)
    }
}

#[cfg(any(loom, tracewing_tsan, not(target_arch = "x86_64")))]
impl Access for Local {
    const IS_SHARED: bool = false;

    fn replace(word: &AtomicU64, old: u64, new: u64) -> bool {
        #[cfg(loom)]
        interrupts::arrive();
        Smp::replace(word, old, new)
    }

    fn add(word: &AtomicU64, by: u64) -> u64 {
        #[cfg(loom)]
        interrupts::arrive();
        let sum = Smp::add(word, by);
        #[cfg(loom)]
        interrupts::arrive();
        sum
    }
}

/// Interrupts in the model checker: a thread's handler runs to its end just before one of the thread's
/// accesses.
#[cfg(loom)]
pub mod interrupts {
    use core::cell::RefCell;
    use std::boxed::Box;

    type Handler = Box<dyn FnOnce()>;

    loom::thread_local! {
        static PENDING: RefCell<Option<(u32, Handler)>> = RefCell::new(None);
    }

    /// Makes `handler` interrupt the calling thread at its access number `at`, counted from 0.
    pub fn interrupt(at: u32, handler: impl FnOnce() + 'static) {
        PENDING.with(|pending| *pending.borrow_mut() = Some((at, Box::new(handler))));
    }

    /// Whether the interrupt is still to come.
    pub fn is_pending() -> bool {
        PENDING.with(|pending| pending.borrow().is_some())
    }

    pub(super) fn arrive() {
        let due = PENDING.with(|pending| {
            let mut pending = pending.borrow_mut();
            match &mut *pending {
                Some((0, _)) => pending.take(),
                Some((at, _)) => {
                    *at -= 1;
                    None
                }
                None => None,
            }
        });
        if let Some((_, handler)) = due {
            handler();
        }
    }
}

#[cfg(all(not(any(loom, tracewing_tsan)), target_arch = "x86_64"))]
impl Access for Local {
    const IS_SHARED: bool = false;

    #[inline(always)]
    fn replace(word: &AtomicU64, old: u64, new: u64) -> bool {
        let replaced: u8;
        // SAFETY: one instruction on an atomic word. Without the lock prefix another CPU's store could come
        // between its load and its store; there is none, by the obligations of `reserve`. x86-64 orders it as
        // release and acquire.
        unsafe {
            core::arch::asm!(
                "cmpxchg [{word}], {new}",
                "sete {replaced}",
                word = in(reg) word.as_ptr(),
                new = in(reg) new,
                replaced = out(reg_byte) replaced,
                inout("rax") old => _,
                options(nostack),
            );
        }
        replaced != 0
    }

    #[inline(always)]
    fn add(word: &AtomicU64, by: u64) -> u64 {
        let before: u64;
        // SAFETY: as in `replace`.
        unsafe {
            core::arch::asm!(
                "xadd [{word}], {by}",
                word = in(reg) word.as_ptr(),
                by = inout(reg) by => before,
                options(nostack),
            );
        }
        before.wrapping_add(by)
    }
}
