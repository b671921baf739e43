//! The reason why a folder or file is refused. It is inside an [`io::Error`], whose text it is.

use std::fmt;
use std::io::{self, ErrorKind};

/// The reason why a folder or file is refused: what it is, and what to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// An output folder or file is a symbolic link.
    Link,
    /// A symbolic link in a recording leads out of it.
    LinkOut,
    /// It belongs to the user with this id.
    Foreign(u32),
    /// Group or others may write to it.
    Writable,
    /// The folder must be empty and is not.
    NotEmpty,
    /// Neither a regular file nor a pipe or device.
    NotAFile,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Link => f.write_str("it is a symbolic link; give the path that it leads to, or a new one"),
            Self::LinkOut => f.write_str(
                "a symbolic link leads out of the recording and is not followed; give the folder that it leads to as a trace of \
                 its own, or put the file in place of the link",
            ),
            Self::Foreign(owner) => write!(
                f,
                "it belongs to user {owner}, and that user could change what is written; give a path that does not exist yet"
            ),
            Self::Writable => f.write_str(
                "its group or others may write to it and could change what is written; chmod go-w it, or give a path that \
                 does not exist yet",
            ),
            Self::NotEmpty => f.write_str("it exists and is not empty; choose another folder or remove it"),
            Self::NotAFile => f.write_str("it is not a regular file"),
        }
    }
}

impl std::error::Error for Refused {}

impl Refused {
    /// The refusal inside an error.
    pub fn of(error: &io::Error) -> Option<Self> {
        error.get_ref()?.downcast_ref().copied()
    }
}

impl From<Refused> for io::Error {
    fn from(refused: Refused) -> Self {
        let kind = match refused {
            Refused::NotEmpty => ErrorKind::DirectoryNotEmpty,
            Refused::NotAFile => ErrorKind::InvalidInput,
            _ => ErrorKind::PermissionDenied,
        };
        Self::new(kind, refused)
    }
}
