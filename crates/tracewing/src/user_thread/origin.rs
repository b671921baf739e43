//! The common properties of user threads that are created at one place. Each of them records only its
//! origin's number; the origin itself is recorded once in each sub-buffer, so that a flight recorder, which
//! overwrites the oldest sub-buffer, keeps it as long as the events that refer to it.

use super::events;
use crate::agent::changes;
use crate::emit;
use core::panic::Location;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tracewing_ring::opened;

/// Name, runtime and place of user threads, for [`create_from`](super::create_from).
#[derive(Debug, Clone)]
pub struct Origin {
    number: u64,
    name: Box<str>,
    runtime: Box<str>,
    file: Box<str>,
    line: u32,
}

impl Origin {
    /// From the arguments of [`create`](super::create).
    pub fn new(name: &str, runtime: &str, location: &Location<'_>) -> Self {
        let parts = Parts { name, runtime, file: location.file(), line: location.line() };
        Self {
            number: parts.number(),
            name: name.into(),
            runtime: runtime.into(),
            file: parts.file.into(),
            line: parts.line,
        }
    }

    /// What stands for it in the trace.
    #[inline(always)]
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Records the origin, unless that is already done, and returns its number.
    #[inline] // as with `Parts::record`
    pub fn describe(&self) -> u64 {
        self.record(false);
        self.number
    }

    /// Records the origin, unless that is already done and not required `again`.
    #[inline(always)]
    pub(super) fn record(&self, again: bool) {
        if again || is_due(self.number) {
            let Self { number, name, runtime, file, line } = self;
            Parts { name, runtime, file, line: *line }.record(*number);
        }
    }
}

/// Reports an origin, unless that is done, and gives its number: as [`Origin::describe`], for few calls.
#[inline] // as with `Parts::record`
pub fn describe(name: &str, runtime: &str, location: &Location<'_>) -> u64 {
    let parts = Parts { name, runtime, file: location.file(), line: location.line() };
    let number = parts.number();
    parts.record_if_due(number, false);
    number
}

/// What an origin consists of.
pub(super) struct Parts<'a> {
    pub name: &'a str,
    pub runtime: &'a str,
    pub file: &'a str,
    pub line: u32,
}

impl Parts<'_> {
    /// A number for it, so wide that two do not share one.
    pub(super) fn number(&self) -> u64 {
        let fold = |hash, text: &str| {
            let (words, rest) = text.as_bytes().as_chunks();
            let mut last = [0xff; 8]; // which no text has
            last[..rest.len()].copy_from_slice(rest);
            words.iter().chain([&last]).fold(hash, |hash, word| mix(hash, u64::from_le_bytes(*word)))
        };
        [self.name, self.runtime, self.file].into_iter().fold(self.line.into(), fold)
    }

    /// Records the origin, unless that is already done and not required `again`.
    #[inline]
    pub(super) fn record_if_due(&self, number: u64, again: bool) {
        if again || is_due(number) {
            self.record(number);
        }
    }

    #[cold]
    #[inline] // not by itself: programs without user threads have no site for it
    fn record(&self, origin: u64) {
        place(origin).store(mark(origin), Relaxed); // before: a thread that finds none has to record it again
        let &Self { name, runtime, file, line } = self;
        emit!(events::Origin { origin, name, runtime, file, line });
    }
}

/// Which origins were recorded recently, each with the time ([`mark`]); two that share an entry are
/// recorded alternately.
static RECENT: [AtomicU64; 1024] = [const { AtomicU64::new(0) }; 1024];

#[inline(always)]
fn place(number: u64) -> &'static AtomicU64 {
    &RECENT[number as usize % RECENT.len()]
}

/// The value in [`RECENT`] for a number until the next sub-buffer is opened, or a recording begins or changes
/// its rules.
#[inline(always)]
fn mark(number: u64) -> u64 {
    number.wrapping_add(u64::from(opened()) << 32).wrapping_add(u64::from(changes()))
}

/// Whether the origin must be recorded. Several threads that ask at the same time may all get `true`.
#[inline(always)]
fn is_due(number: u64) -> bool {
    place(number).load(Relaxed) != mark(number)
}

/// Multiplies and folds, with an odd constant whose bits look random.
fn mix(hash: u64, word: u64) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let product = u128::from(hash ^ word ^ FACTOR) * u128::from(FACTOR);
    (product as u64) ^ ((product >> 64) as u64)
}
