//! The door of a process that a recorder has attached to: a socket that only the two share, in place of the
//! path at which recorders listen otherwise, which may not exist in the process's mount namespace.
//!
//! A thread that the recorder has borrowed (`crate::attach`) starts one of the agent's, which makes the door,
//! and returns the address of a word in which that one leaves the number of the recorder's end ([`Door`]):
//! the borrowed thread is stopped for as short a time as possible. A table of descriptors that has to grow
//! for another one keeps the thread that asks waiting, for 10 to 20 ms where the process has several
//! (`expand_fdtable` of Linux, fs/file.c, waits until all CPUs have seen the new table). The recorder reads
//! the word, and takes the descriptor by `pidfd_getfd`. Then
//!
//! ```text
//! process                                   recorder
//!                                      <-   Enter (once): the recorder has its end; the process closes its copy
//!   Knock (one end of a new socket)    ->
//!   …
//! ```
//!
//! The descriptor of a [`Knock`] is a connection like those that other programs make by `connect`: the
//! process sends its first message on the other end. Forked children inherit the door, and make connections
//! of their own by it. The kernel names the process that has made a socket, and the one that has sent it:
//! they must be the same.

use crate::wire::{Input, Malformed, Output, WireError};

const ENTER: u32 = u32::from_le_bytes(*b"twEn");
const JOIN: u32 = u32::from_le_bytes(*b"twDj");
const ASK: u32 = u32::from_le_bytes(*b"twDa");

/// The error number by which a process says that it can start no thread (`ENOMEM`): not that of the C
/// library, which an entry has another meaning for (`crate::attach::NOT_READY`).
pub const NO_THREAD: i32 = 12;

/// What a process says of a door, in a word of its memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    /// There is none: the word is for the next one.
    Closed,
    /// It is being made.
    Opening,
    /// The number of the recorder's end.
    Open(i32),
    /// It cannot be made: the error number.
    Failed(i32),
}

impl Door {
    /// The word's value.
    pub const fn word(self) -> i64 {
        match self {
            Self::Closed => 0,
            Self::Opening => i64::MAX,
            Self::Open(number) => number as i64 + 1,
            Self::Failed(error) => -(error as i64),
        }
    }

    /// What a value means.
    ///
    /// # Errors
    /// It means nothing.
    pub fn of(word: i64) -> Result<Self, WireError> {
        let small = |value: i64| i32::try_from(value).map_err(|_| WireError::Invalid(Malformed::DoorWord));
        Ok(match word {
            0 => Self::Closed,
            i64::MAX => Self::Opening,
            1.. => Self::Open(small(word - 1)?),
            _ => Self::Failed(small(word.saturating_neg())?),
        })
    }
}

/// The recorder's first and only message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Enter {
    /// Its recording, as regions name it: a process that takes part in it already does nothing, and hangs up.
    pub recording: [u8; 16],
}

impl Enter {
    /// Bytes of the message.
    pub const SIZE: usize = 20;

    /// The message's bytes.
    pub fn encode(&self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        let mut out = Output::new(&mut bytes);
        let _ = out.u32(ENTER).and_then(|()| out.put(&self.recording)); // there is room
        bytes
    }

    /// # Errors
    /// The bytes are no such message.
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let mut input = Input::new(bytes);
        if input.u32()? != ENTER {
            return Err(WireError::Invalid(Malformed::DoorMessage));
        }
        let recording = input.take(16)?.try_into().map_err(|_| WireError::Invalid(Malformed::Recording))?;
        if !input.bytes.is_empty() {
            return Err(WireError::Invalid(Malformed::DoorLength));
        }
        Ok(Self { recording })
    }
}

/// A process's message, which brings one descriptor: an end of a new connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Knock {
    /// For [`Hello`](super::Hello).
    Join,
    /// For a question ([`super::snapshot`]) or a change ([`super::control`]).
    Ask,
}

impl Knock {
    /// Bytes of the message.
    pub const SIZE: usize = 4;

    /// The message's bytes.
    pub fn encode(self) -> [u8; Self::SIZE] {
        match self {
            Self::Join => JOIN,
            Self::Ask => ASK,
        }
        .to_le_bytes()
    }

    /// `None` if the bytes are another message.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        [Self::Join, Self::Ask].into_iter().find(|one| one.encode() == *bytes)
    }
}
