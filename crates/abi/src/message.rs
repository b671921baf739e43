//! The handshake by which a traced program joins a recording: messages over a `SOCK_SEQPACKET` Unix socket, one
//! message per packet, all numbers little-endian, at most [`MAX_MESSAGE`] bytes each.
//!
//! ```text
//! program                                   recorder
//!   Hello                              ->
//!                                      <-   Welcome, with the region's memfd (SCM_RIGHTS), or Refused
//!   Classes (some class descriptions)  ->
//!                                      <-   Ids (one per class, in order; 0: not wanted)
//!   … until all classes are known, then the program closes the socket
//! ```
//!
//! The program always waits for the answer before it sends more, so neither side can fill the other's socket buffer.
//! Afterwards the two share only the region. A child that got its region by `fork` and needs one of its own (protocol
//! `Smp`, or buffers per process) says [`Hello::rejoin`] and sends no classes: ids hold for the whole recording.
//!
//! A connection may also begin with a question about the recording: [`snapshot`].

pub mod snapshot;

use crate::wire::{Input, Output, WireError};

/// Largest message, bytes.
pub const MAX_MESSAGE: usize = 60 * 1024;

const HELLO: u32 = u32::from_le_bytes(*b"twHi");
const WELCOME: u32 = u32::from_le_bytes(*b"twOk");
const REFUSED: u32 = u32::from_le_bytes(*b"twNo");
const CLASSES: u32 = u32::from_le_bytes(*b"twCl");
const IDS: u32 = u32::from_le_bytes(*b"twId");

/// A program's first message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hello {
    /// [`crate::region::VERSION`] of the program.
    pub version: u32,
    /// The program's process id as it sees it; the recorder relies on the socket's credentials instead.
    pub pid: u32,
    /// The kernel and C library give restartable sequences, so protocol `Publish` can be used.
    pub can_publish: bool,
    /// A forked child that already has the recording's class ids and only wants buffers of its own.
    pub rejoin: bool,
}

impl Hello {
    /// Bytes of an encoded `Hello`.
    pub const SIZE: usize = 16;

    /// The message's bytes.
    pub fn encode(&self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        bytes[0..4].copy_from_slice(&HELLO.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.version.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.pid.to_le_bytes());
        bytes[12] = self.can_publish.into();
        bytes[13] = self.rejoin.into();
        bytes
    }

    /// # Errors
    /// The bytes are no `Hello`.
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let mut input = Input::new(bytes);
        if input.u32()? != HELLO {
            return Err(WireError::Invalid("first message"));
        }
        let (version, pid) = (input.u32()?, input.u32()?);
        Ok(Self { version, pid, can_publish: input.u8()? != 0, rejoin: input.u8()? != 0 })
    }
}

/// The recorder's answer to [`Hello`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Comes with the region's file descriptor; the region's header says the rest.
    Welcome {
        /// Size of the region to map, bytes.
        size: u64,
        /// Other processes write to the region as well, so a forked child can go on using it. Else the child asks for
        /// one of its own ([`Hello::rejoin`]).
        shared: bool,
    },
    /// The program is not recorded (another version, or the recording is over).
    Refused,
}

impl Answer {
    /// Bytes of an encoded answer.
    pub const SIZE: usize = 13;

    /// The message's bytes.
    pub fn encode(&self) -> [u8; Self::SIZE] {
        let (tag, size, shared) = match self {
            Self::Welcome { size, shared } => (WELCOME, *size, *shared),
            Self::Refused => (REFUSED, 0, false),
        };
        let mut bytes = [0; Self::SIZE];
        bytes[0..4].copy_from_slice(&tag.to_le_bytes());
        bytes[4..12].copy_from_slice(&size.to_le_bytes());
        bytes[12] = shared.into();
        bytes
    }

    /// # Errors
    /// The bytes are no answer.
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let mut input = Input::new(bytes);
        match input.u32()? {
            WELCOME => Ok(Self::Welcome { size: input.u64()?, shared: input.u8()? != 0 }),
            REFUSED => Ok(Self::Refused),
            _ => Err(WireError::Invalid("answer")),
        }
    }
}

/// Builds a `Classes` message in a caller's buffer, class by class.
pub struct ClassesWriter<'a> {
    out: Output<'a>,
    count: u16,
}

impl<'a> ClassesWriter<'a> {
    /// Bytes in front of the first class.
    pub const HEADER: usize = 6;

    /// An empty message. `buffer` bounds its size; [`MAX_MESSAGE`] bytes are the most that a recorder takes.
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
        return Err(WireError::Invalid("message: event classes expected"));
    }
    let count = input.u16()?;
    Ok((0..count).map(move |_| {
        let len = input.u16()?;
        input.take(len.into())
    }))
}

/// Writes an `Ids` message and gives its length, bytes.
///
/// # Errors
/// It does not fit the buffer.
pub fn encode_ids(ids: &[u16], buffer: &mut [u8]) -> Result<usize, WireError> {
    let mut out = Output::new(buffer);
    out.u32(IDS)?;
    out.u16(u16::try_from(ids.len()).map_err(|_| WireError::TooLarge)?)?;
    for id in ids {
        out.u16(*id)?;
    }
    Ok(out.len)
}

/// The ids of an `Ids` message.
///
/// # Errors
/// The bytes are no such message, or end before the last id.
pub fn decode_ids(bytes: &[u8]) -> Result<impl ExactSizeIterator<Item = u16> + '_, WireError> {
    let mut input = Input::new(bytes);
    if input.u32()? != IDS {
        return Err(WireError::Invalid("message: ids expected"));
    }
    let count = input.u16()?;
    let ids = input.take(usize::from(count) * 2)?;
    Ok(ids.chunks_exact(2).map(|id| u16::from_le_bytes([id[0], id[1]])))
}
