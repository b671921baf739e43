//! What user threads have in common that are created at one place: each of them tells its number, and what
//! that stands for is told once in each sub-buffer, so that a flight recorder, which overwrites the oldest,
//! has it with those that it has.

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
    /// What [`create`](super::create) would be told.
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

    /// Reports what its number stands for, unless that is done, and gives the number.
    #[inline] // as with `Parts::tell`
    pub fn describe(&self) -> u64 {
        self.tell(false);
        self.number
    }

    /// Tells what its number stands for, unless that is done and not asked for `again`.
    #[inline(always)]
    pub(super) fn tell(&self, again: bool) {
        if again || is_due(self.number) {
            let Self { number, name, runtime, file, line } = self;
            Parts { name, runtime, file, line: *line }.tell(*number);
        }
    }
}

/// Reports an origin, unless that is done, and gives its number: as [`Origin::describe`], for few calls.
#[inline] // as with `Parts::tell`
pub fn describe(name: &str, runtime: &str, location: &Location<'_>) -> u64 {
    let parts = Parts { name, runtime, file: location.file(), line: location.line() };
    let number = parts.number();
    parts.tell_if_due(number, false);
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
    pub fn number(&self) -> u64 {
        let fold = |hash, text: &str| {
            let (words, rest) = text.as_bytes().as_chunks();
            let mut last = [0xff; 8]; // which no text has
            last[..rest.len()].copy_from_slice(rest);
            words.iter().chain([&last]).fold(hash, |hash, word| mix(hash, u64::from_le_bytes(*word)))
        };
        [self.name, self.runtime, self.file].into_iter().fold(self.line.into(), fold)
    }

    /// Tells what the number stands for, unless that is done and not asked for `again`.
    #[inline]
    pub fn tell_if_due(&self, number: u64, again: bool) {
        if again || is_due(number) {
            self.tell(number);
        }
    }

    #[cold]
    #[inline] // not by itself: programs without user threads have no site for it
    fn tell(&self, origin: u64) {
        place(origin).store(told(origin), Relaxed); // before: who finds none has to tell it again
        let &Self { name, runtime, file, line } = self;
        emit!(events::Origin { origin, name, runtime, file, line });
    }
}

/// Which origins were told lately, each with when that was ([`told`]); two that share a place are told in
/// turns.
static TOLD: [AtomicU64; 1024] = [const { AtomicU64::new(0) }; 1024];

#[inline(always)]
fn place(number: u64) -> &'static AtomicU64 {
    &TOLD[number as usize % TOLD.len()]
}

/// What stands in [`TOLD`] for a number until the next sub-buffer is opened, or a recording begins or wants
/// something else.
#[inline(always)]
fn told(number: u64) -> u64 {
    number.wrapping_add(u64::from(opened()) << 32).wrapping_add(u64::from(changes()))
}

/// Whether the number is to be told. Of several threads that ask at a time each may be told so.
#[inline(always)]
fn is_due(number: u64) -> bool {
    place(number).load(Relaxed) != told(number)
}

/// Multiplies and folds, with an odd constant whose bits look random.
fn mix(hash: u64, word: u64) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let product = u128::from(hash ^ word ^ FACTOR) * u128::from(FACTOR);
    (product as u64) ^ ((product >> 64) as u64)
}
