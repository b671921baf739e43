//! A recorder's decision on the classes of a program: one [`Grant`] each, in answer to the classes'
//! descriptions (`Grants`), and again whenever the recording's event rules change (`Change`, which the
//! program answers with [`Done`]).

use crate::wire::{Input, Malformed, Output, WireError};

const GRANTS: u32 = u32::from_le_bytes(*b"twGr");
const CHANGE: u32 = u32::from_le_bytes(*b"twCh");
const DONE: u32 = u32::from_le_bytes(*b"twDn");

/// How events of one class are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant<'a> {
    /// The recording's number of the class, never 0 in a `Change`; 0 if it does not accept such a class.
    pub id: u16,
    /// Whether its events are enabled.
    pub on: bool,
    /// The predicate that an event must satisfy (`tracewing_rules::filter`), or empty.
    pub filter: &'a [u8],
}

/// Builds a message of grants in a caller's buffer, grant by grant.
pub struct GrantsWriter<'a> {
    out: Output<'a>,
    count_at: usize,
    count: u16,
}

impl<'a> GrantsWriter<'a> {
    /// An empty `Grants` message. `buffer` bounds its size; at most [`super::MAX_MESSAGE`] bytes are
    /// accepted.
    ///
    /// # Errors
    /// `buffer` has not even room for the message's header.
    pub fn grants(buffer: &'a mut [u8]) -> Result<Self, WireError> {
        let mut out = Output::new(buffer);
        out.u32(GRANTS)?;
        Self::begin(out)
    }

    /// An empty `Change` message; the program's answer has the same number.
    ///
    /// # Errors
    /// `buffer` has not even room for the message's header.
    pub fn change(buffer: &'a mut [u8], number: u32) -> Result<Self, WireError> {
        let mut out = Output::new(buffer);
        out.u32(CHANGE)?;
        out.u32(number)?;
        Self::begin(out)
    }

    fn begin(mut out: Output<'a>) -> Result<Self, WireError> {
        let count_at = out.len;
        out.u16(0)?;
        Ok(Self { out, count_at, count: 0 })
    }

    /// Adds a grant. On error the message is as it was.
    ///
    /// # Errors
    /// It does not fit into what is left of the buffer: send the message and begin another.
    pub fn push(&mut self, grant: Grant<'_>) -> Result<(), WireError> {
        let count = self.count.checked_add(1).ok_or(WireError::TooLarge)?;
        let before = self.out.len;
        if let Err(error) = put(&mut self.out, grant) {
            self.out.len = before;
            return Err(error);
        }
        self.count = count;
        Ok(())
    }

    /// Grants in the message so far.
    pub fn count(&self) -> u16 {
        self.count
    }

    /// The finished message.
    pub fn finish(self) -> &'a [u8] {
        let Output { bytes, len } = self.out;
        bytes[self.count_at..self.count_at + 2].copy_from_slice(&self.count.to_le_bytes());
        &bytes[..len]
    }
}

fn put(out: &mut Output<'_>, grant: Grant<'_>) -> Result<(), WireError> {
    out.u16(grant.id)?;
    out.u8(grant.on.into())?;
    out.u16(u16::try_from(grant.filter.len()).map_err(|_| WireError::TooLarge)?)?;
    out.put(grant.filter)
}

/// The grants of a `Grants` message.
///
/// # Errors
/// The bytes are no such message; an item: they end in the middle of a grant.
pub fn decode_grants(bytes: &[u8]) -> Result<impl Iterator<Item = Result<Grant<'_>, WireError>>, WireError> {
    let mut input = Input::new(bytes);
    if input.u32()? != GRANTS {
        return Err(WireError::Invalid(Malformed::GrantsExpected));
    }
    each(input)
}

/// Number and grants of a `Change` message.
///
/// # Errors
/// The bytes are no such message; an item: they end in the middle of a grant.
pub fn decode_change(
    bytes: &[u8],
) -> Result<(u32, impl Iterator<Item = Result<Grant<'_>, WireError>>), WireError> {
    let mut input = Input::new(bytes);
    if input.u32()? != CHANGE {
        return Err(WireError::Invalid(Malformed::ChangeExpected));
    }
    let number = input.u32()?;
    Ok((number, each(input)?))
}

fn each(mut input: Input<'_>) -> Result<impl Iterator<Item = Result<Grant<'_>, WireError>>, WireError> {
    let count = input.u16()?;
    Ok((0..count).map(move |_| {
        let (id, on, len) = (input.u16()?, input.u8()? != 0, input.u16()?);
        Ok(Grant { id, on, filter: input.take(len.into())? })
    }))
}

/// A program's answer to a `Change`: from now on it writes no event that the change disables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Done<'a> {
    /// The change's number.
    pub number: u32,
    /// Sites that could not be switched.
    pub failed: u32,
    /// Reason of the failure, or empty.
    pub why: &'a str,
}

impl<'a> Done<'a> {
    /// Largest message, bytes.
    pub const LARGEST: usize = 512;
    /// Longest reason, bytes; longer ones are cut.
    pub const LONGEST_WHY: usize = Self::LARGEST - 14;

    /// The message's bytes.
    ///
    /// # Errors
    /// It does not fit the buffer.
    pub fn encode<'b>(&self, buffer: &'b mut [u8]) -> Result<&'b [u8], WireError> {
        let why = &self.why[..self.why.floor_char_boundary(Self::LONGEST_WHY)];
        let mut out = Output::new(buffer);
        out.u32(DONE)?;
        out.u32(self.number)?;
        out.u32(self.failed)?;
        out.str(why)?;
        let Output { bytes, len } = out;
        Ok(&bytes[..len])
    }

    /// # Errors
    /// The bytes are no such message.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, WireError> {
        let mut input = Input::new(bytes);
        if input.u32()? != DONE {
            return Err(WireError::Invalid(Malformed::DoneExpected));
        }
        Ok(Self { number: input.u32()?, failed: input.u32()?, why: input.str()? })
    }
}
