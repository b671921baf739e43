//! The handshake by which a traced program joins a recording: messages over a `SOCK_SEQPACKET` Unix socket,
//! one message per packet, all numbers little-endian, at most [`MAX_MESSAGE`] bytes each.
//!
//! ```text
//! program                                   recorder
//!   Hello                              ->
//!                                      <-   Welcome, with the region's memfd and others (SCM_RIGHTS), or Refused
//!   Classes (some class descriptions)  ->
//!                                      <-   Grants (one per class, in order; several messages if need be)
//!   … until all classes are known; then the connection stays
//!                                      <-   Change (grants of classes whose event rules have changed)
//!   Done                               ->
//!   Late (where the recorder was too late, see [`late`]; no answer)
//!                                      <-   Describe (new classes, see [`ask`]; no answer)
//!                                      <-   Again (what was reported once, see [`ask`]; no answer)
//!                                      <-   Prepare (buffers for the next child, see [`ask`]; no answer)
//!                                      <-   Farewell (the recording is over, or the program is left alone)
//!                                      <-   Join (an invitation to a further recording, see [`join`]; no answer)
//! ```
//!
//! The program always waits for the answer before it sends more, so neither side can fill the other's socket
//! buffer. Grants and changes are [`grant`]'s. Ids are valid for the whole recording, even while their class
//! is disabled.
//!
//! [`Hello::joining`] says what joins: a program; a forked child that needs a region of its own and has none;
//! a child that keeps using its parent's and only needs reports of changes; a program with additional
//! classes, by `dlopen` for instance, whose connection ends with the last grant; a process that wants a
//! region for the next child that it forks; or such a child, which has taken it over.
//!
//! A connection may also begin with a question about the recording, [`snapshot`], or a request to change it,
//! [`control`].

pub mod ask;
pub mod control;
pub mod door;
pub mod grant;
pub mod join;
pub mod late;
pub mod snapshot;

use crate::wire::{Input, Malformed, Output, WireError};

/// Largest message, bytes.
pub const MAX_MESSAGE: usize = 60 * 1024;

const HELLO: u32 = u32::from_le_bytes(*b"twHi");
const WELCOME: u32 = u32::from_le_bytes(*b"twOk");
const REFUSED: u32 = u32::from_le_bytes(*b"twNo");
const KNOWN: u32 = u32::from_le_bytes(*b"twKn");
const CLASSES: u32 = u32::from_le_bytes(*b"twCl");

/// What a connection joins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Joining {
    /// A program that begins to be recorded: it gets buffers, and sends its classes.
    Program = 0,
    /// A forked child, with its parent's ids, that needs buffers of its own.
    Child = 1,
    /// A forked child that has its parent's ids and buffers. It is [`Answer::Known`].
    Sharer = 2,
    /// A program that is recorded, and sends classes that came later. It is [`Answer::Known`].
    More = 3,
    /// A process that is recorded, and wants a region for the next child that it forks. The connection ends
    /// A recorded process that needs a region for the next child that it forks. The connection ends with the
    /// answer.
    Parent = 4,
    /// A forked child that has its parent's ids, and the region that its parent had for it, whose number is
    /// the first of [`Hello::waits`]. It is [`Answer::Known`].
    Heir = 5,
}

impl Joining {
    /// Whether the process has another connection, which stays open.
    pub fn is_passing(self) -> bool {
        matches!(self, Self::More | Self::Parent)
    }

    fn from_number(number: u8) -> Option<Self> {
        let all = [Self::Program, Self::Child, Self::Sharer, Self::More, Self::Parent, Self::Heir];
        all.into_iter().find(|one| *one as u8 == number)
    }
}

/// A program's first message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hello {
    /// [`crate::region::VERSION`] of the program.
    pub version: u32,
    /// The program's process id as it sees it; the recorder relies on the socket's credentials instead.
    pub pid: u32,
    /// Whether kernel and C library support restartable sequences, so that protocol `Publish` can be used.
    pub can_publish: bool,
    /// What joins.
    pub joining: Joining,
    /// Which copy of the tracewing library in the process joins: libraries can have copies of their own.
    pub copy: u64,
    /// When the program began to wait for the recorder, and when it stops waiting; its events in between are
    /// not recorded. Times of day in nanoseconds since 1970.
    pub waits: [u64; 2],
}

impl Hello {
    /// Bytes of an encoded `Hello`.
    pub const SIZE: usize = 40;

    /// The message's bytes.
    pub fn encode(&self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        bytes[0..4].copy_from_slice(&HELLO.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.version.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.pid.to_le_bytes());
        bytes[12] = self.can_publish.into();
        bytes[13] = self.joining as u8;
        bytes[16..24].copy_from_slice(&self.copy.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.waits[0].to_le_bytes());
        bytes[32..40].copy_from_slice(&self.waits[1].to_le_bytes());
        bytes
    }

    /// # Errors
    /// The bytes are no `Hello`.
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let mut input = Input::new(bytes);
        if input.u32()? != HELLO {
            return Err(WireError::Invalid(Malformed::FirstMessage));
        }
        let (version, pid) = (input.u32()?, input.u32()?);
        let can_publish = input.u8()? != 0;
        let joining = Joining::from_number(input.u8()?).ok_or(WireError::Invalid(Malformed::Joining))?;
        let _padding = input.u16()?;
        let copy = input.u64()?;
        Ok(Self { version, pid, can_publish, joining, copy, waits: [input.u64()?, input.u64()?] })
    }
}

/// The recorder's answer to [`Hello`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Comes with the region's file descriptor; the region's header describes the rest. If the region is not
    /// shared, a descriptor of its [`Children`](crate::children::Children) follows, and optionally the
    /// descriptors of a second region of the same size.
    Welcome {
        /// Size of the region to map, bytes.
        size: u64,
        /// Whether forked children keep using the region. If not, they must not have it: a child takes over
        /// the one that its parent has for it, or asks for one of its own ([`Joining::Child`]).
        shared: bool,
        /// Number of the second region if it is for the next child (never 0), else 0.
        spare: u64,
    },
    /// The program has its buffers already.
    Known,
    /// The program is not recorded (another version, or the recording is over).
    Refused,
}

impl Answer {
    /// Bytes of an encoded answer.
    pub const SIZE: usize = 21;
    /// Maximum number of descriptors in an answer.
    pub const FILES: usize = 4;

    /// The message's bytes.
    pub fn encode(&self) -> [u8; Self::SIZE] {
        let (tag, size, shared, spare) = match self {
            Self::Welcome { size, shared, spare } => (WELCOME, *size, *shared, *spare),
            Self::Known => (KNOWN, 0, false, 0),
            Self::Refused => (REFUSED, 0, false, 0),
        };
        let mut bytes = [0; Self::SIZE];
        bytes[0..4].copy_from_slice(&tag.to_le_bytes());
        bytes[4..12].copy_from_slice(&size.to_le_bytes());
        bytes[12] = shared.into();
        bytes[13..21].copy_from_slice(&spare.to_le_bytes());
        bytes
    }

    /// # Errors
    /// The bytes are no answer.
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let mut input = Input::new(bytes);
        match input.u32()? {
            WELCOME => {
                let (size, shared) = (input.u64()?, input.u8()? != 0);
                Ok(Self::Welcome { size, shared, spare: input.u64()? })
            }
            KNOWN => Ok(Self::Known),
            REFUSED => Ok(Self::Refused),
            _ => Err(WireError::Invalid(Malformed::Answer)),
        }
    }
}

/// Builds a `Classes` message in a caller's buffer, class by class.
pub struct ClassesWriter<'a> {
    out: Output<'a>,
    count: u16,
}

impl<'a> ClassesWriter<'a> {
    /// Bytes before the first class.
    pub const HEADER: usize = 6;

    /// An empty message. `buffer` bounds its size; recorders accept at most [`MAX_MESSAGE`] bytes.
    ///
    /// # Errors
    /// `buffer` has not even room for the message's header.
    pub fn new(buffer: &'a mut [u8]) -> Result<Self, WireError> {
        let mut out = Output::new(buffer);
        out.u32(CLASSES)?;
        out.u16(0)?;
        Ok(Self { out, count: 0 })
    }

    /// Adds a class. On error the message is as it was.
    ///
    /// # Errors
    /// The class does not fit into what is left of the buffer: send the message and begin another.
    pub fn push(&mut self, class: &crate::schema::Class<'_>) -> Result<(), WireError> {
        let count = self.count.checked_add(1).ok_or(WireError::TooLarge)?;
        let before = self.out.len;
        if let Err(error) = class.encode_to(&mut self.out) {
            self.out.len = before;
            return Err(error);
        }
        self.count = count;
        Ok(())
    }

    /// Classes in the message so far.
    pub fn count(&self) -> u16 {
        self.count
    }

    /// The finished message.
    pub fn finish(self) -> &'a [u8] {
        let Output { bytes, len } = self.out;
        bytes[4..6].copy_from_slice(&self.count.to_le_bytes());
        &bytes[..len]
    }
}

/// The class descriptions of a `Classes` message: one slice of bytes per class, for
/// [`crate::schema::ClassView::decode`].
///
/// # Errors
/// The bytes are no such message.
pub fn decode_classes(bytes: &[u8]) -> Result<impl Iterator<Item = Result<&[u8], WireError>>, WireError> {
    let mut input = Input::new(bytes);
    if input.u32()? != CLASSES {
        return Err(WireError::Invalid(Malformed::ClassesExpected));
    }
    let count = input.u16()?;
    Ok((0..count).map(move |_| {
        let len = input.u16()?;
        input.take(len.into())
    }))
}
