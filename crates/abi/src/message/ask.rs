//! What a recorder asks of a program that has joined: when it finds events of classes that have no id yet,
//! when it begins an archive, or when a child has taken over the buffers that the program had for it.

const DESCRIBE: [u8; 4] = *b"twDe";
const AGAIN: [u8; 4] = *b"twAg";
const PREPARE: [u8; 4] = *b"twPr";
const TAKEN: [u8; 4] = *b"twTk";

/// Asks the program to describe its new classes, on a separate connection as always
/// ([`Joining::More`](super::Joining::More)), so that they get ids. Needs no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Describe;

impl Describe {
    /// The message's bytes.
    pub fn encode(self) -> [u8; 4] {
        DESCRIBE
    }

    /// `None` if the bytes are another message.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        (bytes == DESCRIBE).then_some(Self)
    }
}

/// Asks the program to report again what it has reported once: its user threads, where locks are taken. Needs
/// no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Again;

impl Again {
    /// The message's bytes.
    pub fn encode(self) -> [u8; 4] {
        AGAIN
    }

    /// `None` if the bytes are another message.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        (bytes == AGAIN).then_some(Self)
    }
}

/// Asks the program to get buffers for the next child that it forks, on a separate connection
/// ([`Joining::Parent`](super::Joining::Parent)). Needs no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prepare;

impl Prepare {
    /// The message's bytes.
    pub fn encode(self) -> [u8; 4] {
        PREPARE
    }

    /// `None` if the bytes are another message.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        (bytes == PREPARE).then_some(Self)
    }
}

/// Sent by a program's forked child: it has taken over the buffers that the program had for it. Answered by
/// [`Prepare`] if possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken;

impl Taken {
    /// The message's bytes.
    pub fn encode(self) -> [u8; 4] {
        TAKEN
    }

    /// `None` if the bytes are another message.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        (bytes == TAKEN).then_some(Self)
    }
}
