//! The crate's one error type: why a recording did not begin.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use crate::ask::AskError;
use crate::refusal::Refusal;

/// Why there was no recording. What goes wrong later is in the [`Outcome`](crate::Outcome), since a trace
/// exists then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The command does not exist, or cannot be executed.
    #[error("cannot run {}: {source}", command.display())]
    Command {
        /// As it was given.
        command: OsString,
        /// The error that the system returned.
        source: io::Error,
    },
    /// Trace folder, clock or buffers.
    #[error(transparent)]
    Consumer(#[from] tracewing_consumer::Error),
    /// Kernel events were asked for that cannot be recorded.
    #[error(transparent)]
    Kernel(#[from] tracewing_kernel::Error),
    /// Samples were asked for that cannot be had.
    #[error(transparent)]
    Profile(#[from] tracewing_profile::Error),
    /// The socket by which programs join.
    #[error("cannot listen for programs at {}: {source}", path.display())]
    Socket {
        /// The socket or its folder.
        path: PathBuf,
        /// The error that the system returned.
        source: io::Error,
    },
    /// The file by which programs that start later find the recorder.
    #[error("cannot let programs that start later join: {}: {source}", path.display())]
    Listing {
        /// The file.
        path: PathBuf,
        /// The error that the system returned.
        source: io::Error,
    },
    /// The user has no folder in which programs look for recorders.
    #[error(
        "programs that start later cannot join: this user has no folder under /run/user, which a login session or \
         `loginctl enable-linger` makes"
    )]
    NoUserFolder,
    /// Other recorders have the places.
    #[error("{0} recordings of all programs are running already, and programs join no more at once")]
    TooManyListed(usize),
    /// No process that runs already can be recorded.
    #[error(transparent)]
    Attach(#[from] Refusal),
    /// The programs of another recording cannot be had.
    #[error(transparent)]
    With(AskError),
    /// A system call that needs nothing but a working system.
    #[error("{call}: {source}")]
    System {
        /// The system call that failed.
        call: &'static str,
        /// The error that the system returned.
        source: io::Error,
    },
}

impl Error {
    pub(crate) fn system<E: Into<io::Error>>(call: &'static str) -> impl FnOnce(E) -> Self {
        move |source| Self::System { call, source: source.into() }
    }

    /// The exit status that a shell would give: 127 for a command that does not exist, 126 for one that
    /// cannot be executed, 1 for everything else.
    pub fn exit_status(&self) -> i32 {
        match self {
            Self::Command { source, .. } if source.kind() == io::ErrorKind::NotFound => 127,
            Self::Command { .. } => 126,
            _ => 1,
        }
    }
}
