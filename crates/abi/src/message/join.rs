//! An invitation to a further recording: a recorder passes it on to its programs, over the connections that
//! it keeps. There is no answer; a program that accepts connects and joins as at its start.

use crate::wire::{Input, Malformed, Output, WireError};

const JOIN: u32 = u32::from_le_bytes(*b"twJn");

/// Asks the program to also join the recorder that listens on this socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Join<'a> {
    /// Path of the socket.
    pub path: &'a [u8],
}

impl<'a> Join<'a> {
    /// Longest path, bytes: what fits a socket address (`struct sockaddr_un`).
    pub const LONGEST_PATH: usize = 107;
    /// Largest message, bytes.
    pub const LARGEST: usize = 6 + Self::LONGEST_PATH;

    /// The message's bytes.
    ///
    /// # Errors
    /// It does not fit the buffer, or the path is too long.
    pub fn encode<'b>(&self, buffer: &'b mut [u8]) -> Result<&'b [u8], WireError> {
        if self.path.len() > Self::LONGEST_PATH {
            return Err(WireError::TooLarge);
        }
        let mut out = Output::new(buffer);
        out.u32(JOIN)?;
        out.u16(self.path.len() as u16)?;
        out.put(self.path)?;
        let Output { bytes, len } = out;
        Ok(&bytes[..len])
    }

    /// # Errors
    /// The bytes are no such message.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, WireError> {
        let mut input = Input::new(bytes);
        if input.u32()? != JOIN {
            return Err(WireError::Invalid(Malformed::InvitationExpected));
        }
        let len = input.u16()?;
        let path = input.take(len.into())?;
        if path.len() > Self::LONGEST_PATH || !input.bytes.is_empty() {
            return Err(WireError::Invalid(Malformed::InvitationLength));
        }
        Ok(Self { path })
    }
}
