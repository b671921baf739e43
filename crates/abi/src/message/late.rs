//! What a program says that its recorder has kept waiting, once it is recorded: since when, and until when,
//! nothing of it was; and what a recorder says to a program that it leaves alone.

use crate::wire::{Input, Output, WireError};

const LATE: u32 = u32::from_le_bytes(*b"twLa");
const ALONE: u32 = u32::from_le_bytes(*b"twAl");
const OVER: u32 = u32::from_le_bytes(*b"twOv");

/// Nothing is known of the program's events between two times of day, in nanoseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Late {
    /// When it began.
    pub from: u64,
    /// When its events were recorded.
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
            return Err(WireError::Invalid("message"));
        }
        Ok(Self { from: input.u64()?, to: input.u64()? })
    }
}

/// A recorder's last word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Farewell {
    /// A filter for system calls watches the program: it is not to do anything any more, not even to end its
    /// part. Its threads write events as before.
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
