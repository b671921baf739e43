//! Changes to a running recording, requested over the socket by which programs join: one [`Control`] per
//! connection, in place of [`super::Hello`]; the answer ends it.
//!
//! ```text
//! asker                                     recorder
//!   Control                            ->
//!                                      ...  Change, Done with every program that it concerns
//!                                      <-   Refused, or Effect and Items
//! ```
//!
//! Only the user that records, and root, may ask.

use super::snapshot::cut;
use crate::wire::{Input, Malformed, Output, WireError};

const CONTROL: u32 = u32::from_le_bytes(*b"twCt");
const ANSWER: u32 = u32::from_le_bytes(*b"twEf");

/// A change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control<'a> {
    /// No change: asks for the rules.
    Show,
    /// Adds an event rule after the existing ones, encoded by the crate `rules`.
    Rule(&'a [u8]),
    /// Switches major classes in the recording's mask word.
    Majors {
        /// Whether to switch them on.
        on: bool,
        /// A bit per major class; the others stay as they are.
        majors: u64,
    },
    /// No events until [`Control::Resume`].
    Pause,
    /// Ends a pause.
    Resume,
    /// No change to this recording: its programs should also join another one, whose recorder listens at this
    /// path.
    Invite(&'a [u8]),
}

impl<'a> Control<'a> {
    /// Bytes of a message without its rule or path.
    pub const HEADER: usize = 18;

    /// Writes the message into `buffer`, of [`Control::HEADER`] bytes and the rule's or path's, and gives its
    /// length.
    ///
    /// # Errors
    /// It does not fit.
    pub fn encode(&self, buffer: &mut [u8]) -> Result<usize, WireError> {
        let mut out = Output::new(buffer);
        out.u32(CONTROL)?;
        out.u32(crate::region::VERSION)?;
        match *self {
            Self::Show => out.u8(0)?,
            Self::Rule(bytes) | Self::Invite(bytes) => {
                out.u8(if matches!(self, Self::Rule(_)) { 1 } else { 5 })?;
                out.u16(u16::try_from(bytes.len()).map_err(|_| WireError::TooLarge)?)?;
                out.put(bytes)?;
            }
            Self::Majors { on, majors } => {
                out.u8(2)?;
                out.u8(on.into())?;
                out.u64(majors)?;
            }
            Self::Pause => out.u8(3)?,
            Self::Resume => out.u8(4)?,
        }
        Ok(out.len)
    }

    /// Whether the bytes are such a message, and not another kind of first message.
    pub fn is_one(bytes: &[u8]) -> bool {
        Input::new(bytes).u32() == Ok(CONTROL)
    }

    /// # Errors
    /// The bytes are no such message, or one of another version.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, WireError> {
        let mut input = Input::new(bytes);
        if input.u32()? != CONTROL {
            return Err(WireError::Invalid(Malformed::RecordingChangeExpected));
        }
        if input.u32()? != crate::region::VERSION {
            return Err(WireError::Invalid(Malformed::RecordingChangeVersion));
        }
        let this = match input.u8()? {
            0 => Self::Show,
            tag @ (1 | 5) => {
                let len = input.u16()?;
                let bytes = input.take(len.into())?;
                if tag == 1 { Self::Rule(bytes) } else { Self::Invite(bytes) }
            }
            2 => Self::Majors { on: input.u8()? != 0, majors: input.u64()? },
            3 => Self::Pause,
            4 => Self::Resume,
            _ => return Err(WireError::Invalid(Malformed::RecordingChange)),
        };
        if input.bytes.is_empty() {
            Ok(this)
        } else {
            Err(WireError::Invalid(Malformed::RecordingChangeLength))
        }
    }
}

/// State of a recording after a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effect {
    /// Programs that the recorder can reach.
    pub programs: u32,
    /// Event classes that are on in at least one of them, whatever the mask word says.
    pub classes: u32,
    /// The mask word: a bit per major class that is on.
    pub majors: u64,
    /// Whether recording is paused.
    pub is_paused: bool,
    /// Programs that were asked to change and have not answered.
    pub unanswered: u32,
    /// Recorded programs that the recorder cannot reach.
    pub unreachable: u32,
}

/// A line of an answer's second part. As many as fit are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Item<'a> {
    /// An event rule, as text; in the order of the rules.
    Rule(&'a str),
    /// A note for the asker.
    Note(&'a str),
    /// What failed in a program, and why.
    Failure(&'a str),
    /// One of [`Effect::unanswered`]: process id and name.
    Unanswered(u32, &'a str),
    /// One of [`Effect::unreachable`]: process id and name.
    Unreachable(u32, &'a str),
}

/// The answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer<'a> {
    /// Nothing was changed; the reason.
    Refused(&'a str),
    /// State after the change.
    Changed(Effect),
}

/// Builds an answer in a caller's buffer.
pub struct AnswerWriter<'a> {
    out: Output<'a>,
}

impl<'a> AnswerWriter<'a> {
    /// An answer without items. At most [`super::MAX_MESSAGE`] bytes are read.
    ///
    /// # Errors
    /// It does not fit the buffer.
    pub fn new(buffer: &'a mut [u8], answer: &Answer<'_>) -> Result<Self, WireError> {
        let mut out = Output::new(buffer);
        out.u32(ANSWER)?;
        match answer {
            Answer::Refused(why) => {
                out.u8(1)?;
                out.str(cut(why))?;
            }
            Answer::Changed(effect) => {
                out.u8(0)?;
                out.u8(effect.is_paused.into())?;
                out.u64(effect.majors)?;
                for number in [effect.programs, effect.classes, effect.unanswered, effect.unreachable] {
                    out.u32(number)?;
                }
            }
        }
        Ok(Self { out })
    }

    /// Adds an item; long texts are cut. On error the answer is as it was.
    ///
    /// # Errors
    /// It does not fit into what is left of the buffer.
    pub fn push(&mut self, item: Item<'_>) -> Result<(), WireError> {
        let before = self.out.len;
        let (tag, pid, text) = match item {
            Item::Rule(text) => (0, 0, text),
            Item::Note(text) => (1, 0, text),
            Item::Unanswered(pid, name) => (2, pid, name),
            Item::Unreachable(pid, name) => (3, pid, name),
            Item::Failure(text) => (4, 0, text),
        };
        let out = &mut self.out;
        let added = out.u8(tag).and_then(|()| out.u32(pid)).and_then(|()| out.str(cut(text)));
        if added.is_err() {
            out.len = before;
        }
        added
    }

    /// The message's length.
    pub fn finish(self) -> usize {
        self.out.len
    }
}

/// An answer, and its items up to the first that is cut short.
///
/// # Errors
/// The bytes are no answer.
pub fn decode_answer(bytes: &[u8]) -> Result<(Answer<'_>, impl Iterator<Item = Item<'_>>), WireError> {
    const INVALID: WireError = WireError::Invalid(Malformed::RecordingChangeAnswer);
    let mut input = Input::new(bytes);
    if input.u32()? != ANSWER {
        return Err(INVALID);
    }
    let answer = match input.u8()? {
        0 => {
            let (is_paused, majors) = (input.u8()? != 0, input.u64()?);
            let [programs, classes, unanswered, unreachable] =
                [input.u32()?, input.u32()?, input.u32()?, input.u32()?];
            Answer::Changed(Effect { programs, classes, majors, is_paused, unanswered, unreachable })
        }
        1 => Answer::Refused(input.str()?),
        _ => return Err(INVALID),
    };
    let items = core::iter::from_fn(move || {
        let (tag, pid, text) = (input.u8().ok()?, input.u32().ok()?, input.str().ok()?);
        match tag {
            0 => Some(Item::Rule(text)),
            1 => Some(Item::Note(text)),
            2 => Some(Item::Unanswered(pid, text)),
            3 => Some(Item::Unreachable(pid, text)),
            4 => Some(Item::Failure(text)),
            _ => None,
        }
    });
    Ok((answer, items))
}
