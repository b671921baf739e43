//! A lock that survives `fork`: it records which process took it. A child whose parent held it on another
//! thread takes it over, since that thread does not exist in the child. The protected data must therefore be
//! consistent after each single store.

use core::ptr;
use core::sync::atomic::{AtomicU32, Ordering};

/// Set together with the holder's process id, which is below 2^22, while a thread waits.
const WAITED_FOR: u32 = 1 << 31;

/// The holder where its process has no other thread; no process has this id.
const NO_PROCESS: u32 = 1 << 30;

/// Waits by futex. A child that is forked while it is held finds it free: the holder is another process
/// there.
pub struct Lock {
    /// 0 while free, otherwise the process id of the holder, or [`NO_PROCESS`].
    holder: AtomicU32,
}

/// Holds the lock until it is dropped.
pub struct Guard<'a>(&'a Lock);

impl Lock {
    /// A free lock.
    #[allow(clippy::new_without_default, reason = "for statics")]
    pub const fn new() -> Self {
        Self { holder: AtomicU32::new(0) }
    }

    /// Waits until the lock is free, and takes it. A thread that already holds it deadlocks.
    ///
    /// Where the process has no other thread, which is so while most programs start, without a system call.
    pub fn lock(&self) -> Guard<'_> {
        // Acquire: as below. No thread comes to see this holder, nor does a fork.
        if is_only_thread()
            && self.holder.compare_exchange(0, NO_PROCESS, Ordering::Acquire, Ordering::Relaxed).is_ok()
        {
            return Guard(self);
        }
        // SAFETY: has no obligations.
        let process = unsafe { libc::getpid() } as u32;
        let mut mine = process;
        loop {
            let holder = self.holder.load(Ordering::Relaxed);
            if holder == 0 || holder & !WAITED_FOR != process {
                // Acquire: with the release in `drop`, what the last holder did is visible.
                if self.holder.compare_exchange(holder, mine, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                    return Guard(self);
                }
                continue;
            }
            let waited_for = holder | WAITED_FOR;
            if holder == waited_for
                || self
                    .holder
                    .compare_exchange(holder, waited_for, Ordering::Relaxed, Ordering::Relaxed)
                    .is_ok()
            {
                // After one thread has waited, others may be waiting as well.
                mine = process | WAITED_FOR;
                // SAFETY: the word is valid for the call, which only compares it. Returning early is
                // harmless.
                unsafe {
                    libc::syscall(
                        libc::SYS_futex,
                        self.holder.as_ptr(),
                        libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
                        waited_for,
                        ptr::null::<libc::timespec>(),
                    );
                }
            }
        }
    }
}

/// Whether the C library says that the process has no thread besides the calling one.
fn is_only_thread() -> bool {
    #[cfg(all(target_arch = "x86_64", target_env = "gnu", not(miri)))]
    {
        let flag: *const u8;
        // SAFETY: loads an address from the table that the linker fills: null before glibc 2.32.
        unsafe {
            core::arch::asm!(
                ".weak __libc_single_threaded",
                "mov {flag}, qword ptr [rip + __libc_single_threaded@GOTPCREL]",
                flag = out(reg) flag,
                options(pure, readonly, nostack, preserves_flags),
            );
        }
        // SAFETY: null, or a variable of the C library's, which only a thread writes that is alone.
        !flag.is_null() && unsafe { flag.read_volatile() } != 0
    }
    #[cfg(not(all(target_arch = "x86_64", target_env = "gnu", not(miri))))]
    false
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        // Release: pairs with the acquire in `lock`.
        if self.0.holder.swap(0, Ordering::Release) & WAITED_FOR != 0 {
            // SAFETY: wakes a waiter on the word's address, without reading it.
            unsafe {
                libc::syscall(
                    libc::SYS_futex,
                    self.0.holder.as_ptr(),
                    libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
                    1,
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_without_a_number_is_taken_for_one_that_has_gone() {
        // Only a process without other threads sets it, which a test is not.
        let lock = Lock { holder: AtomicU32::new(NO_PROCESS) };
        drop(lock.lock());
        assert_eq!(lock.holder.into_inner(), 0);
    }
}
