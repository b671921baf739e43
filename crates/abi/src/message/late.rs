//! Sent by a program once it is recorded, if its recorder has kept it waiting: the interval in which its
//! events were not recorded. Also a recorder's last message to a program.

use crate::wire::{Input, Malformed, Output, WireError};

const LATE: u32 = u32::from_le_bytes(*b"twLa");
const ALONE: u32 = u32::from_le_bytes(*b"twAl");
const OVER: u32 = u32::from_le_bytes(*b"twOv");

/// The program's events between two times of day, in nanoseconds since 1970, are unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Late {
    /// Beginning of the interval.
    pub from: u64,
    /// From when on events are recorded.
    pub to: u64,
}

impl Late {
    /// Bytes of an encoded message.
    pub const SIZE: usize = 20;

    /// The message's bytes.
    pub fn encode(&self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        let mut out = Output::new(&mut bytes);
        let _ = out.u32(LATE); // there is room
        let _ = out.u64(self.from);
        let _ = out.u64(self.to);
        bytes
    }

    /// # Errors
    /// The bytes are no such message.
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let mut input = Input::new(bytes);
        if input.u32()? != LATE {
            return Err(WireError::Invalid(Malformed::Message));
        }
        Ok(Self { from: input.u64()?, to: input.u64()? })
    }
}

/// A recorder's last message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Farewell {
    /// A filter for system calls restricts the program: it must not do anything any more, not even leave the
    /// recording. Its threads write events as before.
    Alone,
    /// The recording is over.
    Over,
}

impl Farewell {
    /// The message's bytes.
    pub fn encode(self) -> [u8; 4] {
        match self {
            Self::Alone => ALONE,
            Self::Over => OVER,
        }
        .to_le_bytes()
    }

    /// `None` if the bytes are another message.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let word = u32::from_le_bytes(bytes.try_into().ok()?);
        [Self::Alone, Self::Over].into_iter().find(|one| one.encode() == word.to_le_bytes())
    }
}
