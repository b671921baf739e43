//! Locks: those of `tracewing::sync`, and those that the library `tracewing-preload` records.
//! `docs/reference/locks.md` explains how the events fit together.

use crate::declare::readers;
use crate::field::{FieldKind, Fields, Recorded};
use tracewing_units::{Caller, Chain, LockAddress, Tid};

/// Passes the declaration of the events of provider `lock` to a macro.
#[macro_export]
macro_rules! lock_events {
    ($($then:ident)::+) => { $($then)::+ ! {
        provider "lock" named "lock:";
        enumerations {
            /// What is acquired, and how. Kinds that provider `user_thread` also has are numbered alike.
            Kind: u8 {
                /// A mutex.
                Mutex = 0 "mutex",
                /// A read-write lock, for reading.
                Read = 1 "read",
                /// A read-write lock, for writing.
                Write = 2 "write",
                /// A semaphore.
                Semaphore = 3 "semaphore",
                /// A spin lock.
                Spin = 16 "spin",
            }
        }
        events {
            /// The thread could not acquire a lock at once and waits.
            Requested "requested" [print = "{kind} {lock:#x}, held by thread {owner}, requested at {caller:#x}"] {
                /// Address of the lock.
                lock: LockAddress [hex],
                /// Return address of the call, or a number described by `lock:place`.
                caller: Caller [hex],
                /// Kind of lock, and how it is acquired.
                kind: Kind,
                /// Thread that holds the lock according to the lock itself; 0 if unknown.
                owner: Owner,
            }

            /// The thread acquired the lock.
            Acquired "acquired" [ordered, print = "{kind} {lock:#x} at {caller:#x}, waited: {waited}"] {
                /// Address of the lock.
                lock: LockAddress [hex],
                /// Return address of the call, or a number described by `lock:place`.
                caller: Caller [hex],
                /// Kind of lock, and how it is acquired.
                kind: Kind,
                /// Whether the thread had to wait.
                @optional waited: bool,
            }

            /// The thread stops spinning on a lock: it acquired it, or goes to sleep.
            Spun "spun" [print = "{lock:#x}, {spins} times"] {
                /// Address of the lock.
                lock: LockAddress [hex],
                /// Number of attempts.
                spins: u64,
            }

            /// Source line of a caller number; recorded when it is first seen.
            Place<'e> "place" [print = "{caller:#x} is {file}:{line}"] {
                /// Return address of the call, or a number described by `lock:place`.
                caller: Caller [hex],
                /// Source file.
                file: &'e str,
                /// Line in that file.
                line: u32,
            }

            /// The thread did not acquire the lock: it was held (`EBUSY`, for a try), the wait timed out
            /// (`ETIMEDOUT`), or another error.
            Refused "refused" [print = "{kind} {lock:#x} at {caller:#x}: error {error}"] {
                /// Address of the lock.
                lock: LockAddress [hex],
                /// Return address of the call, or a number described by `lock:place`.
                caller: Caller [hex],
                /// Kind of lock, and how it is acquired.
                kind: Kind,
                /// Error number, as in `errno`.
                @optional error: i32,
            }

            /// The thread is about to release the lock.
            Released "released" [print = "{lock:#x}"] {
                /// Address of the lock.
                lock: LockAddress [hex],
            }

            /// The release just recorded failed.
            NotReleased "not_released" [level = "warn", print = "{lock:#x}: error {error}"] {
                /// Address of the lock.
                lock: LockAddress [hex],
                /// Error number, as in `errno`.
                error: i32,
            }

            /// The thread adds a permit to a semaphore.
            Posted "posted" [print = "semaphore {lock:#x} at {caller:#x}"] {
                /// Address of the lock.
                lock: LockAddress [hex],
                /// Return address of the call, or a number described by `lock:place`.
                caller: Caller [hex],
            }

            /// The thread waits for a condition variable, and releases the mutex while it waits.
            ConditionWait "condition_wait" [print = "condition {condition:#x} with mutex {lock:#x} at {caller:#x}"] {
                /// Address of the condition variable.
                condition: LockAddress [hex],
                /// Address of the lock.
                lock: LockAddress [hex],
                /// Return address of the call, or a number described by `lock:place`.
                caller: Caller [hex],
            }

            /// The thread stops waiting for the condition variable and holds the mutex again.
            ConditionWoken "condition_woken" [ordered, print = "condition {condition:#x} with mutex {lock:#x}: error {error}"] {
                /// Address of the condition variable.
                condition: LockAddress [hex],
                /// Address of the lock.
                lock: LockAddress [hex],
                /// 0, `EOWNERDEAD` (the mutex's last owner died with it) or `ETIMEDOUT`; with any other error
                /// the mutex was never released.
                @optional error: i32,
            }

            /// The thread wakes waiters of the condition variable.
            ConditionSignalled "condition_signalled" [print = "condition {condition:#x} at {caller:#x}, all: {all}"] {
                /// Address of the condition variable.
                condition: LockAddress [hex],
                /// Return address of the call, or a number described by `lock:place`.
                caller: Caller [hex],
                /// Whether all waiters are woken, not one.
                all: bool,
            }

            /// The thread arrives at a barrier.
            BarrierWait "barrier_wait" [print = "barrier {barrier:#x} at {caller:#x}"] {
                /// Address of the barrier.
                barrier: LockAddress [hex],
                /// Return address of the call, or a number described by `lock:place`.
                caller: Caller [hex],
            }

            /// All threads have arrived at the barrier.
            BarrierPassed "barrier_passed" [ordered, print = "barrier {barrier:#x}, serial: {serial}"] {
                /// Address of the barrier.
                barrier: LockAddress [hex],
                /// Whether this thread is the barrier's serial thread.
                serial: bool,
            }

            /// Call chain of the acquisition in progress.
            CalledFrom "called_from" [print = "{lock:#x} by chain {chain:#x}"] {
                /// Address of the lock.
                lock: LockAddress [hex],
                /// Number of the chain, described by `lock:call_chain`.
                chain: Chain [hex],
            }

            /// A call chain; recorded when first seen, and again in each new sub-buffer.
            CallChain<'e> "call_chain" {
                /// Number of the chain.
                chain: Chain [hex],
                /// Return addresses, the innermost first.
                frames: &'e [u64] [hex],
            }

            /// File mapped between two addresses; recorded when first seen, and again in each new sub-buffer.
            Image<'e> "image" [print = "{begin:#x} to {end:#x} are {path}"] {
                /// First address.
                begin: u64 [hex],
                /// First address after the mapping.
                end: u64 [hex],
                /// Load address minus the file's own address.
                bias: u64 [hex],
                /// Path of the file.
                path: &'e str,
            }

            /// An unexpected object defines the function: one that precedes `tracewing-preload`, so that some
            /// calls may not be recorded, or an allocator, whose locks are recorded with the program's.
            Shadowed<'e> "shadowed" [level = "warn", print = "{function} is also defined by {path}, which precedes the recorder"] {
                /// Name of the function.
                function: &'e str,
                /// Path of the file.
                path: &'e str,
            }
        }
    } };
}

lock_events!(readers);

/// In declarations: the thread that holds a lock, which a reader gets as an optional [`Tid`].
#[derive(Debug)]
pub enum Owner {}

impl<'e> Recorded<'e> for Owner {
    type Read = Option<Tid>;
    const KIND: FieldKind = <i32 as Recorded>::KIND;

    #[inline(always)]
    fn read(fields: &impl Fields<'e>, place: usize) -> Option<Option<Tid>> {
        let number = <i32 as Recorded>::read(fields, place)?;
        Some((number != 0).then_some(Tid(number)))
    }
}
