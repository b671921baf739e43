//! How the words of a buffer can contradict each other.

use core::fmt;

/// Why a stretch of a buffer cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Contradiction {
    /// The write position lies outside of the buffer.
    HeadOutside,
    /// The write position lies before what was read.
    HeadBefore,
    /// A sub-buffer claims more bytes than it has, or fewer than its header.
    Size,
    /// A sub-buffer has the number of another one.
    Number,
    /// A sub-buffer ends before it begins.
    Time,
    /// Written space has no event.
    NoEvent,
    /// A sub-buffer does not begin with an event.
    NoFirstEvent,
    /// An event does not end within its space, or has a stamp before that of the previous one.
    Event,
    /// An event is longer than the rest of its sub-buffer.
    EventLength,
}

impl fmt::Display for Contradiction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::HeadOutside => "write position outside the buffer",
            Self::HeadBefore => "write position before what was read",
            Self::Size => "sub-buffer with an impossible size",
            Self::Number => "sub-buffer with a foreign number",
            Self::Time => "sub-buffer whose time goes backwards",
            Self::NoEvent => "space without events",
            Self::NoFirstEvent => "sub-buffer that begins with no event",
            Self::Event => "event with an impossible length or stamp",
            Self::EventLength => "event with an impossible length",
        })
    }
}
