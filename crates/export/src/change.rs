//! What happens in a container, as it waits in the sorter: a few bytes, without pointers.

use crate::model::{ContainerId, CounterId, NameId};
use crate::sort::{Item, Sorter};
use tracewing_units::Timestamp;

/// Numbers a link.
pub(crate) type LinkId = u64;

/// What changes at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change<'s> {
    /// A container does something else from now on.
    State {
        of: ContainerId,
        name: NameId,
        /// The wake that led to it, and whose it was.
        woken: Option<(LinkId, ContainerId)>,
    },
    /// Nothing more is known of what a container does.
    NoState { of: ContainerId },
    /// A function begins in a container of functions, within those that have begun there; or the innermost
    /// one ends.
    Function { of: ContainerId, name: Option<NameId> },
    /// A container wakes another one, which goes on with the state that has this number.
    Wake { of: ContainerId, woken: ContainerId, link: LinkId },
    /// A thread was looked at.
    Sample {
        of: ContainerId,
        /// The names of functions, the innermost first, in four bytes each.
        chain: &'s [u8],
    },
    /// A counter has this value from now on.
    Counter { counter: CounterId, value: u64 },
    /// An event.
    Event {
        of: ContainerId,
        name: NameId,
        /// Its fields, as the format has them.
        fields: &'s [u8],
    },
}

/// Ranks among changes at one time: what is woken comes behind its wake, and an event behind the begin of its
/// state.
const NO_STATE: u8 = 0;
const WAKE: u8 = 1;
const STATE: u8 = 2;
const WOKEN: u8 = 3;
const EVENT: u8 = 4;
const FUNCTION: u8 = 5;
const SAMPLE: u8 = 6;
const COUNTER: u8 = 7;

impl<'s> Change<'s> {
    /// Gives it to the sorter.
    #[inline]
    pub fn push(self, time: Timestamp, sorter: &mut Sorter) -> std::io::Result<()> {
        match self {
            Change::NoState { of } => sorter.push(time, NO_STATE, |out| words(out, [of])),
            Change::State { of, name, woken: None } => sorter.push(time, STATE, |out| words(out, [of, name])),
            Change::State { of, name, woken: Some((link, by)) } => sorter.push(time, WOKEN, |out| {
                words(out, [of, name, by]);
                out.extend_from_slice(&link.to_le_bytes());
            }),
            // Both of one rank, to stay in their order.
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

    /// What the sorter gives back; `None` for what it never had.
    #[inline]
    pub fn of(item: Item<'s>) -> Option<Self> {
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

/// The words of a [`Change::Sample`]'s chain.
pub(crate) fn chain(bytes: &[u8]) -> impl Iterator<Item = NameId> {
    bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word))
}

fn words<const N: usize>(out: &mut Vec<u8>, words: [u32; N]) {
    words.iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
}

fn word(bytes: &[u8], number: usize) -> Option<u32> {
    bytes.get(4 * number..)?.first_chunk().map(|word| u32::from_le_bytes(*word))
}
