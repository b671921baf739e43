//! Little-endian reading and writing of bounded byte strings, shared by the messages and the class
//! descriptions.

/// Why bytes could not be encoded or decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireError {
    /// The output buffer, or the room that a length field leaves, is too small.
    TooLarge,
    /// The input ends in the middle of a value.
    Truncated,
    /// The value is none of those that are allowed for its field.
    Invalid(Malformed),
}

impl core::fmt::Display for WireError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::TooLarge => f.write_str("does not fit the message"),
            Self::Truncated => f.write_str("message ends in the middle of a value"),
            Self::Invalid(what) => write!(f, "invalid {}", what.text()),
        }
    }
}

impl core::error::Error for WireError {}

/// What of a message is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Malformed {
    /// Text that is not UTF-8.
    Text,
    /// A connection begins with another message than the first one.
    FirstMessage,
    /// An unknown way to join.
    Joining,
    /// An unknown answer to a program.
    Answer,
    /// A message of another kind.
    Message,
    /// Another message than event classes.
    ClassesExpected,
    /// Another message than an invitation.
    InvitationExpected,
    /// An invitation with bytes left.
    InvitationLength,
    /// Another message than grants.
    GrantsExpected,
    /// Another message than a change of grants.
    ChangeExpected,
    /// Another message than that a change is done.
    DoneExpected,
    /// Another message than a change of the recording.
    RecordingChangeExpected,
    /// A change of the recording in an unknown version.
    RecordingChangeVersion,
    /// An unknown change of the recording.
    RecordingChange,
    /// A change of the recording with bytes left.
    RecordingChangeLength,
    /// An unknown answer to a change of the recording.
    RecordingChangeAnswer,
    /// An unknown question.
    Question,
    /// A question in an unknown version.
    QuestionVersion,
    /// An unknown status of a recording.
    Status,
    /// An unknown answer to a request for a snapshot.
    SnapshotAnswer,
    /// Another message than a door takes.
    DoorMessage,
    /// A word of a door that is out of range.
    DoorWord,
    /// A message at a door with bytes left.
    DoorLength,
    /// A recording's id of another length.
    Recording,
    /// A table of event classes that has not its form.
    ClassTable,
    /// An unknown level.
    Level,
    /// A major class that is out of range.
    MajorClass,
    /// A class description with bytes left.
    ClassLength,
    /// An unknown shape of a field.
    FieldShape,
    /// An unknown type of a field.
    FieldType,
    /// An unknown base of a field.
    FieldBase,
    /// Levels of a rule that are none.
    RuleLevels,
    /// A predicate of a rule that cannot be evaluated.
    RulePredicate,
    /// An unknown action of a rule.
    RuleAction,
}

impl Malformed {
    /// The part of the message, to go after "invalid".
    pub const fn text(self) -> &'static str {
        match self {
            Self::Text => "UTF-8 in a string",
            Self::FirstMessage => "first message",
            Self::Joining => "kind of joining",
            Self::Answer => "answer",
            Self::Message => "message",
            Self::ClassesExpected => "message: event classes expected",
            Self::InvitationExpected => "message: invitation expected",
            Self::InvitationLength => "length of an invitation",
            Self::GrantsExpected => "message: grants expected",
            Self::ChangeExpected => "message: change expected",
            Self::DoneExpected => "message: done expected",
            Self::RecordingChangeExpected => "message: a change of the recording expected",
            Self::RecordingChangeVersion => "version of a change of the recording",
            Self::RecordingChange => "change of the recording",
            Self::RecordingChangeLength => "length of a change",
            Self::RecordingChangeAnswer => "answer to a change of the recording",
            Self::Question => "question",
            Self::QuestionVersion => "version of a question",
            Self::Status => "status",
            Self::SnapshotAnswer => "answer to a request for a snapshot",
            Self::DoorMessage => "message at a door",
            Self::DoorWord => "word of a door",
            Self::DoorLength => "length of a message at a door",
            Self::Recording => "recording",
            Self::ClassTable => "table of event classes",
            Self::Level => "level",
            Self::MajorClass => "major class",
            Self::ClassLength => "length of a class description",
            Self::FieldShape => "shape of a field",
            Self::FieldType => "type of a field",
            Self::FieldBase => "base of a field",
            Self::RuleLevels => "levels of a rule",
            Self::RulePredicate => "predicate of a rule",
            Self::RuleAction => "action of a rule",
        }
    }
}

/// Appends values to a caller's buffer.
pub struct Output<'a> {
    /// The caller's buffer.
    pub bytes: &'a mut [u8],
    /// Bytes of it that are in use.
    pub len: usize,
}

impl<'a> Output<'a> {
    /// An empty output; `bytes` bounds it.
    pub fn new(bytes: &'a mut [u8]) -> Self {
        Self { bytes, len: 0 }
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// [`WireError::TooLarge`] where it does not fit.
    pub fn put(&mut self, value: &[u8]) -> Result<(), WireError> {
        let end = self.len.checked_add(value.len()).ok_or(WireError::TooLarge)?;
        self.bytes.get_mut(self.len..end).ok_or(WireError::TooLarge)?.copy_from_slice(value);
        self.len = end;
        Ok(())
    }

    /// Appends a number.
    ///
    /// # Errors
    /// [`WireError::TooLarge`] where it does not fit.
    pub fn u8(&mut self, value: u8) -> Result<(), WireError> {
        self.put(&[value])
    }

    /// Appends a number.
    ///
    /// # Errors
    /// [`WireError::TooLarge`] where it does not fit.
    pub fn u16(&mut self, value: u16) -> Result<(), WireError> {
        self.put(&value.to_le_bytes())
    }

    /// Appends a number.
    ///
    /// # Errors
    /// [`WireError::TooLarge`] where it does not fit.
    pub fn u32(&mut self, value: u32) -> Result<(), WireError> {
        self.put(&value.to_le_bytes())
    }

    /// Appends a number.
    ///
    /// # Errors
    /// [`WireError::TooLarge`] where it does not fit.
    pub fn u64(&mut self, value: u64) -> Result<(), WireError> {
        self.put(&value.to_le_bytes())
    }

    /// Appends a string, prefixed with its 16-bit length.
    ///
    /// # Errors
    /// [`WireError::TooLarge`] where it does not fit.
    pub fn str(&mut self, value: &str) -> Result<(), WireError> {
        self.u16(u16::try_from(value.len()).map_err(|_| WireError::TooLarge)?)?;
        self.put(value.as_bytes())
    }
}

/// Takes values from the front of a byte string.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    /// Bytes that have not been read yet.
    pub bytes: &'a [u8],
}

impl<'a> Input<'a> {
    /// Reads `bytes` from their beginning.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// Takes `len` bytes.
    ///
    /// # Errors
    /// [`WireError::Truncated`] where less is left.
    pub fn take(&mut self, len: usize) -> Result<&'a [u8], WireError> {
        let (head, rest) = self.bytes.split_at_checked(len).ok_or(WireError::Truncated)?;
        self.bytes = rest;
        Ok(head)
    }

    /// Takes `N` bytes.
    ///
    /// # Errors
    /// [`WireError::Truncated`] where less is left.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let (head, rest) = self.bytes.split_first_chunk::<N>().ok_or(WireError::Truncated)?;
        self.bytes = rest;
        Ok(*head)
    }

    /// Takes a number.
    ///
    /// # Errors
    /// [`WireError::Truncated`] where less is left.
    pub fn u8(&mut self) -> Result<u8, WireError> {
        self.array().map(u8::from_le_bytes)
    }

    /// Takes a number.
    ///
    /// # Errors
    /// [`WireError::Truncated`] where less is left.
    pub fn u16(&mut self) -> Result<u16, WireError> {
        self.array().map(u16::from_le_bytes)
    }

    /// Takes a number.
    ///
    /// # Errors
    /// [`WireError::Truncated`] where less is left.
    pub fn u32(&mut self) -> Result<u32, WireError> {
        self.array().map(u32::from_le_bytes)
    }

    /// Takes a number.
    ///
    /// # Errors
    /// [`WireError::Truncated`] where less is left.
    pub fn u64(&mut self) -> Result<u64, WireError> {
        self.array().map(u64::from_le_bytes)
    }

    /// Takes a string, prefixed with its 16-bit length.
    ///
    /// # Errors
    /// [`WireError::Truncated`] where less is left, [`WireError::Invalid`] where it is not UTF-8.
    pub fn str(&mut self) -> Result<&'a str, WireError> {
        let len = self.u16()?;
        core::str::from_utf8(self.take(len.into())?).map_err(|_| WireError::Invalid(Malformed::Text))
    }
}
