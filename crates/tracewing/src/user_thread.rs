//! User threads: what a program itself schedules onto threads of the kernel (tasks of an async runtime,
//! fibers, green threads), reported to the recording by the library that schedules them.
//!
//! These are plain functions for any such library; the crate `tracewing-tokio` calls them for tokio.
//! `docs/reference/tasks.md` explains the events, and what a reader can rely on.
//!
//! ```
//! use std::panic::Location;
//! use tracewing::user_thread::{self, Cause, Outcome};
//!
//! // A scheduler makes a thread …
//! let thread = user_thread::create("reader", "fibers", Location::caller());
//! // … runs it on this thread of the kernel, until it has to wait …
//! user_thread::switch(Some(thread), Cause::None);
//! assert_eq!(user_thread::current(), Some(thread));
//! user_thread::switch(None, Cause::Blocked);
//! // … learns that it can continue …
//! user_thread::wake(thread);
//! // … and runs it to its end.
//! user_thread::switch(Some(thread), Cause::None);
//! user_thread::switch(None, Cause::Ended);
//! // One that is dropped before its end reports how it ended.
//! let other = user_thread::create("other", "fibers", Location::caller());
//! user_thread::exit(other, Outcome::Cancelled);
//! ```
//!
//! All of them may be called wherever events may be emitted, including signal handlers; only [`Origin::new`]
//! allocates. Without a recording, each costs the instructions of its site; in addition, `create` takes a
//! number and `switch` does a store, both in the thread's own memory.

mod events;
mod numbers;
mod origin;
mod reported;
mod request;

use core::fmt;
use core::num::NonZeroU64;
use core::panic::Location;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::{Event, emit, words};
pub use events::{Cause, Kind, Outcome};
pub use origin::{Origin, describe};
pub use reported::Reported;
pub use request::Request;

/// A user thread's number: unique in the process, counted from 1 by the first thread that creates any; others
/// have blocks of their own.
///
/// In a child made by `fork`, numbers continue from the parent's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UserThread(NonZeroU64);

impl UserThread {
    /// The one with this number, which [`get`](Self::get) has given; `None` for 0.
    pub fn from_number(number: u64) -> Option<Self> {
        NonZeroU64::new(number).map(Self)
    }

    /// The number that stands in the trace.
    pub fn get(self) -> NonZeroU64 {
        self.0
    }
}

impl From<NonZeroU64> for UserThread {
    fn from(number: NonZeroU64) -> Self {
        Self(number)
    }
}

impl fmt::Display for UserThread {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// The number in an event.
fn number(thread: Option<UserThread>) -> u64 {
    thread.map_or(0, |thread| thread.0.get())
}

/// A number that no user thread has had.
#[inline]
fn next() -> UserThread {
    static BLOCKS: AtomicU64 = AtomicU64::new(0);
    UserThread(words::with(|words| numbers::next(&BLOCKS, words.next_user_thread)))
}

/// A new user thread, ready to run, whose parent is the [`current`] one.
///
/// `runtime` names its scheduler; `location` is the place that requested it.
#[inline]
pub fn create(name: &str, runtime: &str, location: &Location<'_>) -> UserThread {
    create_at(name, runtime, location.file(), location.line())
}

/// As [`create`], of a place that is not Rust's.
#[inline]
pub fn create_at(name: &str, runtime: &str, file: &str, line: u32) -> UserThread {
    let thread = next();
    if wants_create() {
        let parts = origin::Parts { name, runtime, file, line };
        let number = parts.number();
        record_creation(thread, number, |again| parts.record_if_due(number, again));
    }
    thread
}

/// Like [`create`], but faster, for callers that create many at few places.
#[inline]
pub fn create_from(origin: &Origin) -> UserThread {
    let thread = next();
    if wants_create() {
        record_creation(thread, origin.number(), |again| origin.record(again));
    }
    thread
}

/// Records a new user thread and, unless that is already done, its origin; with one of each block of numbers
/// in any case, since other processes may overwrite what was recorded.
#[inline(always)]
fn record_creation(thread: UserThread, origin: u64, record_origin: impl Fn(bool)) {
    let thread = number(Some(thread));
    record_origin(thread % numbers::BLOCK == 1);
    emit!(events::Create { thread, parent: number(current()), origin });
    record_origin(false); // that event may have been the first of a sub-buffer
}

/// A new user thread that is not recorded: for callers for which the arguments of [`create`] are expensive,
/// if no recording [enables](wants_create) it.
#[inline]
pub fn create_unrecorded() -> UserThread {
    next()
}

/// Whether a recording enables [`create`]'s event: for callers for which the texts are expensive.
#[inline]
pub fn wants_create() -> bool {
    events::Create::class().is_on()
}

/// The user thread may have been created before a recording, or before its last rotation: one that does
/// not know it yet gets its number and its origin. To be called when it begins to run, before [`switch`], and
/// when it stops or ends.
///
/// `describe` gives the origin's number by [`Origin::describe`] or [`describe`].
///
/// ```
/// use std::panic::Location;
/// use tracewing::user_thread::{self, Reported};
///
/// struct Fiber {
///     thread: user_thread::UserThread,
///     reported: Reported,
///     name: &'static str,
///     place: &'static Location<'static>,
/// }
///
/// fn begins(fiber: &mut Fiber) {
///     let Fiber { thread, reported, name, place } = fiber;
///     user_thread::existed(*thread, reported, || user_thread::describe(name, "fibers", place));
/// }
///
/// // Before it is created: of a recording that begins in between, it is not known whether that has it.
/// let reported = Reported::at_creation();
/// let place = Location::caller();
/// let thread = user_thread::create("reader", "fibers", place);
/// begins(&mut Fiber { thread, reported, name: "reader", place });
/// ```
#[inline]
pub fn existed(thread: UserThread, reported: &mut Reported, describe: impl Fn() -> u64) {
    let mut is_new = false;
    emit!({
        is_new = reported.take_due();
        if !is_new {
            return;
        }
        events::Existed { thread: number(Some(thread)), origin: describe() }
    });
    if is_new {
        describe(); // that event may have been the first of a sub-buffer
    }
}

/// The user thread is called `name` from now on.
#[inline]
pub fn name(thread: UserThread, name: &str) {
    emit!(events::Name { thread: thread.0.get(), name });
}

/// The calling thread of the kernel runs `next` from now on, or none. Returns what it ran until now, which
/// stops because of `cause`; if it ran none, the recording has [`Cause::None`].
#[inline]
pub fn switch(next: Option<UserThread>, cause: Cause) -> Option<UserThread> {
    let prev = current();
    emit!(events::Switch {
        prev: number(prev),
        next: number(next),
        cause: if prev.is_some() { cause } else { Cause::None },
    });
    words::with(|words| words.user_thread.store(number(next), Relaxed));
    prev
}

/// Whether a recording enables [`switch`]'s event: for callers for which the cause is expensive to find.
#[inline]
pub fn wants_switch() -> bool {
    events::Switch::class().is_on()
}

/// The user thread that the calling thread of the kernel runs, according to [`switch`].
#[inline]
pub fn current() -> Option<UserThread> {
    UserThread::from_number(words::with(|words| words.user_thread.load(Relaxed)))
}

/// The user thread can continue. Called by the code that causes it, before the user thread can run.
#[inline]
pub fn wake(thread: UserThread) {
    emit!(events::Wake { thread: thread.0.get() });
}

/// Whether a recording enables [`wake`]'s event: for callers for which wakes are expensive to detect.
#[inline]
pub fn wants_wake() -> bool {
    events::Wake::class().is_on()
}

/// The user thread ends. One that runs is switched away from afterwards, with [`Cause::Ended`]; of one that
/// has [completed](Outcome::Completed), that alone says so, too.
#[inline]
pub fn exit(thread: UserThread, outcome: Outcome) {
    emit!(events::Exit { thread: thread.0.get(), outcome });
}

/// The calling thread of the kernel is worker `number` of this runtime.
#[inline]
pub fn worker(runtime: &str, number: u32) {
    emit!(events::Worker { runtime, worker: number });
}

/// Worker `number`, the calling thread of the kernel, has nothing to do and is about to sleep.
#[inline]
pub fn park(number: u32) {
    emit!(events::Park { worker: number });
}

/// Worker `number`, the calling thread of the kernel, has slept.
#[inline]
pub fn unpark(number: u32) {
    emit!(events::Unpark { worker: number });
}
