//! The door of a process that a recorder has attached to: a socket that only the two share, in place of the
//! path at which recorders listen otherwise, which may not exist in the process's mount namespace.
//!
//! A thread that the recorder has borrowed makes it (`crate::attach`), and gives the number of the recorder's
//! end; the recorder takes that by `pidfd_getfd`. Then
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

use crate::wire::{Input, Output, WireError};

const ENTER: u32 = u32::from_le_bytes(*b"twEn");
const JOIN: u32 = u32::from_le_bytes(*b"twDj");
const ASK: u32 = u32::from_le_bytes(*b"twDa");

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
            return Err(WireError::Invalid("message at a door"));
        }
        let recording = input.take(16)?.try_into().map_err(|_| WireError::Invalid("recording"))?;
        if !input.bytes.is_empty() {
            return Err(WireError::Invalid("length of a message at a door"));
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
