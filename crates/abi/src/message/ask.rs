//! What a recorder asks of a program that has joined: when it finds events of classes that have no id yet, or
//! when a child has taken over the buffers that the program had for it.

const DESCRIBE: [u8; 4] = *b"twDe";
const PREPARE: [u8; 4] = *b"twPr";
const TAKEN: [u8; 4] = *b"twTk";

/// The program is to describe its new classes, by a connection of its own as always
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

/// The program is to get buffers for the next child that it forks, by a connection of its own
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

/// A program's message, which its forked child sends: the child has taken over the buffers that the program
/// had for it. Answered by [`Prepare`], where that can be.
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
