//! Questions to a recorder, sent over the socket by which programs join: its status, and requests for a
//! snapshot of a flight recorder's buffers, or for a rotation of another recording. One question per
//! connection, in place of [`super::Hello`]; the answer ends it.
//!
//! ```text
//! asker                                     recorder
//!   Question::Status                   ->
//!                                      <-   Status
//!   Question::Snapshot                 ->
//!                                      <-   Taken, once the snapshot is written
//!   Question::Rotate                   ->
//!                                      <-   Taken, once the archive is written
//!   Question::Clear                    ->
//!                                      <-   Taken, once what was recorded is removed
//! ```

use crate::wire::{Input, Malformed, Output, WireError};

const ASK: u32 = u32::from_le_bytes(*b"twAs");
const STATUS: u32 = u32::from_le_bytes(*b"twSt");
/// After the numbers of askers for a snapshot.
const ROTATE: u8 = 4;
const CLEAR: u8 = 5;
const TAKEN: u32 = u32::from_le_bytes(*b"twTk");

/// Longest text in an answer, bytes; longer ones are cut.
pub const LONGEST_TEXT: usize = 4096;
/// Largest answer, bytes.
pub const LARGEST_ANSWER: usize =
    17 + Figures::SIZE + size_of::<[u32; Status::PROCESSES]>() + 3 * (2 + LONGEST_TEXT);

/// A question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    /// Asks for the recorder's [`Status`].
    Status,
    /// Take a snapshot.
    Snapshot(Asker),
    /// Complete the present archive, and begin the next one.
    Rotate,
    /// Remove the present archive, and begin the next one.
    Clear,
}

/// What asks for a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Asker {
    /// A traced program.
    Program = 1,
    /// A traced program that panics.
    Panic = 2,
    /// `tracewing snapshot`.
    Command = 3,
}

impl Question {
    /// Bytes of an encoded question.
    pub const SIZE: usize = 9;

    /// The message's bytes.
    pub fn encode(&self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        bytes[0..4].copy_from_slice(&ASK.to_le_bytes());
        bytes[4..8].copy_from_slice(&crate::region::VERSION.to_le_bytes());
        bytes[8] = match self {
            Self::Status => 0,
            Self::Snapshot(asker) => *asker as u8,
            Self::Rotate => ROTATE,
            Self::Clear => CLEAR,
        };
        bytes
    }

    /// Whether the bytes are a question, and not the first message of a program that joins.
    pub fn is_one(bytes: &[u8]) -> bool {
        Input::new(bytes).u32() == Ok(ASK)
    }

    /// # Errors
    /// The bytes are no question, or one of another version.
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let mut input = Input::new(bytes);
        if input.u32()? != ASK {
            return Err(WireError::Invalid(Malformed::Question));
        }
        if input.u32()? != crate::region::VERSION {
            return Err(WireError::Invalid(Malformed::QuestionVersion));
        }
        Ok(match input.u8()? {
            0 => Self::Status,
            1 => Self::Snapshot(Asker::Program),
            2 => Self::Snapshot(Asker::Panic),
            3 => Self::Snapshot(Asker::Command),
            ROTATE => Self::Rotate,
            CLEAR => Self::Clear,
            _ => return Err(WireError::Invalid(Malformed::Question)),
        })
    }
}

/// A recorder's status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status<'a> {
    /// The recorder's process id.
    pub pid: u32,
    /// Process id of the recorded command.
    pub command_pid: u32,
    /// Process ids of those that it has attached to, or that take part with events of their own; 0: none.
    pub processes: [u32; Status::PROCESSES],
    /// Whether it is a flight recorder, so that snapshots can be had.
    pub is_flight_recorder: bool,
    /// Whether it waits for the events of a trigger, for the other recorders of its session.
    pub is_trigger: bool,
    /// How far the recording is.
    pub figures: Figures,
    /// What the user has called the recording; empty if nothing.
    pub name: &'a str,
    /// The recorded command, its words separated by spaces.
    pub command: &'a str,
    /// The folder that it writes to.
    pub output: &'a str,
}

/// How far a recording is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Figures {
    /// Time since it began, nanoseconds.
    pub elapsed: u64,
    /// Events written so far; in a flight recorder those that were seen.
    pub events: u64,
    /// Events known to be lost so far.
    pub lost: u64,
    /// Whether more were lost.
    pub is_lost_unknown: bool,
    /// Bytes written so far.
    pub bytes: u64,
    /// Archives or snapshots that are on the disk no more.
    pub removed: Removed,
    /// The command for each archive; `None` if there is none.
    pub commands: Option<Commands>,
    /// Snapshots so far.
    pub snapshots: u32,
    /// Programs that take part at present.
    pub programs: u32,
    /// How full the fullest buffer was at the last look at it, in hundredths.
    pub fullest: u8,
    /// Whether events of programs are not recorded at present.
    pub is_paused: bool,
    /// The kernel's buffers.
    pub kernel: KernelBuffers,
    /// What the recording's lists have no room for.
    pub left_out: LeftOut,
}

/// What was left out since a list was full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LeftOut {
    /// Notes.
    pub notes: u64,
    /// Times that a program has joined which is not listed: each of its copies of tracewing joins.
    pub programs: u64,
}

/// Archives or snapshots that were removed: for want of room, or since the recording was cleared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Removed {
    /// How many.
    pub count: u64,
    /// Number of events in them.
    pub events: u64,
    /// Bytes of them.
    pub bytes: u64,
}

/// For how many archives the command of `--on-archive` was run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Commands {
    /// It has ended, or was killed.
    pub run: u64,
    /// Of these, it has failed.
    pub failed: u64,
    /// The archive was removed before.
    pub skipped: u64,
    /// It runs, or is to be run.
    pub waiting: u64,
}

/// The buffer that the kernel has for each CPU, as it has made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KernelBuffers {
    /// Number of sub-buffers; 0 if none of the kernel's events are recorded.
    pub sub_buffers: u32,
    /// Bytes of a sub-buffer.
    pub sub_buffer_bytes: u32,
    /// Whether a full buffer loses its oldest sub-buffer in place of the new event.
    pub overwrites: bool,
}

impl Figures {
    const SIZE: usize = 13 * 8 + 4 * 4 + 5;

    fn encode(&self, out: &mut Output<'_>) -> Result<(), WireError> {
        let Removed { count, events, bytes } = self.removed;
        let LeftOut { notes, programs } = self.left_out;
        let Commands { run, failed, skipped, waiting } = self.commands.unwrap_or_default();
        [self.elapsed, self.events, self.lost, self.bytes, count, events, bytes, notes, programs]
            .into_iter()
            .chain([run, failed, skipped, waiting])
            .try_for_each(|value| out.u64(value))?;
        out.u8(self.commands.is_some().into())?;
        out.u32(self.snapshots)?;
        out.u32(self.programs)?;
        out.u32(self.kernel.sub_buffers)?;
        out.u32(self.kernel.sub_buffer_bytes)?;
        [self.fullest, self.is_lost_unknown.into(), self.is_paused.into(), self.kernel.overwrites.into()]
            .into_iter()
            .try_for_each(|value| out.u8(value))
    }

    fn decode(input: &mut Input<'_>) -> Result<Self, WireError> {
        let (elapsed, events, lost, bytes) = (input.u64()?, input.u64()?, input.u64()?, input.u64()?);
        let removed = Removed { count: input.u64()?, events: input.u64()?, bytes: input.u64()? };
        let left_out = LeftOut { notes: input.u64()?, programs: input.u64()? };
        let commands = Commands {
            run: input.u64()?,
            failed: input.u64()?,
            skipped: input.u64()?,
            waiting: input.u64()?,
        };
        let mut this = Self {
            elapsed,
            events,
            lost,
            bytes,
            removed,
            left_out,
            commands: (input.u8()? != 0).then_some(commands),
            snapshots: input.u32()?,
            programs: input.u32()?,
            ..Self::default()
        };
        this.kernel.sub_buffers = input.u32()?;
        this.kernel.sub_buffer_bytes = input.u32()?;
        this.fullest = input.u8()?;
        this.is_lost_unknown = input.u8()? != 0;
        this.is_paused = input.u8()? != 0;
        this.kernel.overwrites = input.u8()? != 0;
        Ok(this)
    }
}

impl<'a> Status<'a> {
    /// How many processes a message names at most.
    pub const PROCESSES: usize = 1024;

    /// Writes the message into `buffer`, of [`LARGEST_ANSWER`] bytes at most, and gives its length.
    ///
    /// # Errors
    /// It does not fit.
    pub fn encode(&self, buffer: &mut [u8]) -> Result<usize, WireError> {
        let mut out = Output::new(buffer);
        out.u32(STATUS)?;
        out.u32(self.pid)?;
        out.u32(self.command_pid)?;
        self.processes.into_iter().try_for_each(|pid| out.u32(pid))?;
        out.u8(self.is_flight_recorder.into())?;
        out.u8(self.is_trigger.into())?;
        self.figures.encode(&mut out)?;
        out.str(cut(self.name))?;
        out.str(cut(self.command))?;
        out.str(cut(self.output))?;
        Ok(out.len)
    }

    /// # Errors
    /// The bytes are no status.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, WireError> {
        let mut input = Input::new(bytes);
        if input.u32()? != STATUS {
            return Err(WireError::Invalid(Malformed::Status));
        }
        let (pid, command_pid) = (input.u32()?, input.u32()?);
        let mut processes = [0; Self::PROCESSES];
        for place in &mut processes {
            *place = input.u32()?;
        }
        Ok(Self {
            pid,
            command_pid,
            processes,
            is_flight_recorder: input.u8()? != 0,
            is_trigger: input.u8()? != 0,
            figures: Figures::decode(&mut input)?,
            name: input.str()?,
            command: input.str()?,
            output: input.str()?,
        })
    }
}

/// Result of a request for a snapshot, for a rotation, or to clear the recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken<'a> {
    /// It is complete, in this folder; of a request to clear: that in which the recording continues.
    Folder(&'a str),
    /// The recording is no flight recorder's.
    NotFlightRecorder,
    /// The recorder was configured to refuse such an asker.
    NotWanted,
    /// It could not be written; the reason.
    Failed(&'a str),
}

impl<'a> Taken<'a> {
    /// Writes the message into `buffer`, of [`LARGEST_ANSWER`] bytes at most, and gives its length.
    ///
    /// # Errors
    /// It does not fit.
    pub fn encode(&self, buffer: &mut [u8]) -> Result<usize, WireError> {
        let (tag, text) = match self {
            Self::Folder(folder) => (0, *folder),
            Self::NotFlightRecorder => (1, ""),
            Self::NotWanted => (2, ""),
            Self::Failed(why) => (3, *why),
        };
        let mut out = Output::new(buffer);
        out.u32(TAKEN)?;
        out.u8(tag)?;
        out.str(cut(text))?;
        Ok(out.len)
    }

    /// # Errors
    /// The bytes are no such answer.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, WireError> {
        let mut input = Input::new(bytes);
        if input.u32()? != TAKEN {
            return Err(WireError::Invalid(Malformed::SnapshotAnswer));
        }
        let (tag, text) = (input.u8()?, input.str()?);
        match tag {
            0 => Ok(Self::Folder(text)),
            1 => Ok(Self::NotFlightRecorder),
            2 => Ok(Self::NotWanted),
            3 => Ok(Self::Failed(text)),
            _ => Err(WireError::Invalid(Malformed::SnapshotAnswer)),
        }
    }
}

/// At most [`LONGEST_TEXT`] bytes of a text.
pub(super) fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(LONGEST_TEXT)]
}
