//! Changes of containers as the sorter stores them: a few bytes each, without pointers.

use crate::model::{ContainerId, CounterId, NameId};
use crate::sort::{Item, Sorter};
use tracewing_units::Timestamp;

pub(crate) type LinkId = u64;

/// A change at a point in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change<'s> {
    /// The container changes to this state.
    State {
        of: ContainerId,
        name: NameId,
        /// The wake that led to this state, and the container woken by it.
        woken: Option<(LinkId, ContainerId)>,
    },
    /// The container's state is unknown from now on.
    NoState { of: ContainerId },
    /// In a container of functions, a function begins, nested in those that are open; `None` ends the
    /// innermost one.
    Function { of: ContainerId, name: Option<NameId> },
    /// A container wakes another one, whose next state carries the same link number.
    Wake { of: ContainerId, woken: ContainerId, link: LinkId },
    /// A sample of a thread.
    Sample {
        of: ContainerId,
        /// Name ids of the functions, innermost first, four bytes each.
        chain: &'s [u8],
    },
    /// A counter has this value from now on.
    Counter { counter: CounterId, value: u64 },
    Event {
        of: ContainerId,
        name: NameId,
        /// The event's fields, in the encoding of the output format.
        fields: &'s [u8],
    },
}

/// Ranks of changes at the same time: a woken container's state comes after the wake, an event after the
/// beginning of its container's state.
const NO_STATE: u8 = 0;
const WAKE: u8 = 1;
const STATE: u8 = 2;
const WOKEN: u8 = 3;
const EVENT: u8 = 4;
const FUNCTION: u8 = 5;
const SAMPLE: u8 = 6;
const COUNTER: u8 = 7;

impl<'s> Change<'s> {
    /// Pushes the change to the sorter.
    #[inline]
    pub(crate) fn push(self, time: Timestamp, sorter: &mut Sorter) -> std::io::Result<()> {
        match self {
            Change::NoState { of } => sorter.push(time, NO_STATE, |out| words(out, [of])),
            Change::State { of, name, woken: None } => sorter.push(time, STATE, |out| words(out, [of, name])),
            Change::State { of, name, woken: Some((link, by)) } => sorter.push(time, WOKEN, |out| {
                words(out, [of, name, by]);
                out.extend_from_slice(&link.to_le_bytes());
            }),
            // Begin and end share a rank, so they keep their order.
            Change::Function { of, name: Some(name) } => {
                sorter.push(time, FUNCTION, |out| words(out, [of, name]))
            }
            Change::Function { of, name: None } => sorter.push(time, FUNCTION, |out| words(out, [of])),
            Change::Wake { of, woken, link } => sorter.push(time, WAKE, |out| {
                words(out, [of, woken]);
                out.extend_from_slice(&link.to_le_bytes());
            }),
            Change::Sample { of, chain } => sorter.push(time, SAMPLE, |out| {
                words(out, [of]);
                out.extend_from_slice(chain);
            }),
            Change::Counter { counter, value } => sorter.push(time, COUNTER, |out| {
                words(out, [counter]);
                out.extend_from_slice(&value.to_le_bytes());
            }),
            Change::Event { of, name, fields } => sorter.push(time, EVENT, |out| {
                words(out, [of, name]);
                out.extend_from_slice(fields);
            }),
        }
    }

    /// Decodes an item of the sorter; `None` if it is not an encoded change.
    #[inline]
    pub(crate) fn of(item: Item<'s>) -> Option<Self> {
        let bytes = item.bytes;
        let long = |at: usize| bytes.get(at..)?.first_chunk().map(|long| u64::from_le_bytes(*long));
        Some(match item.rank {
            NO_STATE => Change::NoState { of: word(bytes, 0)? },
            STATE => Change::State { of: word(bytes, 0)?, name: word(bytes, 1)?, woken: None },
            WOKEN => {
                let woken = Some((long(12)?, word(bytes, 2)?));
                Change::State { of: word(bytes, 0)?, name: word(bytes, 1)?, woken }
            }
            WAKE => Change::Wake { of: word(bytes, 0)?, woken: word(bytes, 1)?, link: long(8)? },
            FUNCTION => Change::Function { of: word(bytes, 0)?, name: word(bytes, 1) },
            SAMPLE => Change::Sample { of: word(bytes, 0)?, chain: bytes.get(4..)? },
            COUNTER => Change::Counter { counter: word(bytes, 0)?, value: long(4)? },
            EVENT => Change::Event { of: word(bytes, 0)?, name: word(bytes, 1)?, fields: bytes.get(8..)? },
            _ => return None,
        })
    }
}

/// Decodes the chain of a [`Change::Sample`].
pub(crate) fn chain(bytes: &[u8]) -> impl Iterator<Item = NameId> {
    bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word))
}

fn words<const N: usize>(out: &mut Vec<u8>, words: [u32; N]) {
    words.iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
}

fn word(bytes: &[u8], number: usize) -> Option<u32> {
    bytes.get(4 * number..)?.first_chunk().map(|word| u32::from_le_bytes(*word))
}
