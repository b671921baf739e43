//! A recorded program asks its flight recorder for a snapshot: at a moment that it finds interesting, or when
//! it panics.

use std::fmt;
use std::panic::{self, PanicHookInfo};
use std::path::PathBuf;
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering::*};

use tracewing_abi::message::snapshot::{Asker, LARGEST_ANSWER, Taken};

use crate::agent::{self, Unanswered};
use crate::own::Panic;

/// Why there is no snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The program is not recorded, or it records itself (see `Session::snapshot`).
    NotRecorded,
    /// The program is recorded by `tracewing record` without `--flight-recorder`: everything is on disk
    /// already.
    NotFlightRecorder,
    /// The recorder is gone, or another user's: only programs of its own user, and root's, may ask for a
    /// snapshot.
    NotReached,
    /// The recorder was configured to take none on a panic (`--snapshot-on`).
    NotWanted,
    /// The recorder could not write it; why, in its words: it is another process.
    Failed(String),
    /// The recorder did not answer in time, or is of another version.
    NoAnswer,
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotRecorded => f.write_str("no snapshot: `tracewing record` does not record this program"),
            Self::NotFlightRecorder => f.write_str("no snapshot: the recorder is not a flight recorder"),
            Self::NotReached => f.write_str(
                "no snapshot: the recorder is gone, or another user's, which takes none for this one",
            ),
            Self::NotWanted => f.write_str("no snapshot: the recorder takes none on a panic"),
            Self::Failed(why) => write!(f, "the recorder could not take a snapshot: {why}"),
            Self::NoAnswer => f.write_str("no snapshot: the recorder does not answer"),
        }
    }
}

impl std::error::Error for SnapshotError {}

impl From<Unanswered> for SnapshotError {
    fn from(unanswered: Unanswered) -> Self {
        match unanswered {
            Unanswered::NotReached => Self::NotReached,
            Unanswered::Silent => Self::NoAnswer,
        }
    }
}

/// Makes the flight recorder that records this program (`tracewing record --flight-recorder`) write the
/// content of its buffers, and waits until that is done, for half a minute at most. Returns the folder: a
/// complete trace with everything that was emitted before the call and is still in the buffers.
///
/// Recording continues in the meantime. Not to be called from a signal handler.
///
/// # Errors
/// There is not a flight recorder, or it cannot write the snapshot.
pub fn snapshot() -> Result<PathBuf, SnapshotError> {
    ask(Asker::Program)
}

/// Takes a snapshot after a panic if `tracewing record --flight-recorder` records the program; does nothing
/// otherwise.
///
/// Installs a panic hook, which emits the event `tracewing:panic`, requests the snapshot, and then calls the
/// previous hook. Only the first panic of a process leads to a snapshot, so that a server that panics with
/// every request does not fill the disk. The recorder may be configured not to take it (`--snapshot-on`).
///
/// ```no_run
/// tracewing::snapshot_on_panic(); // early in `main`
/// ```
///
/// # Panics
/// Called from a thread that panics, as [`std::panic::set_hook`] does.
pub fn snapshot_on_panic() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            note(info);
            before(info);
        }));
    });
}

fn note(info: &PanicHookInfo<'_>) {
    /// The process that has had its snapshot.
    static ASKED: AtomicU32 = AtomicU32::new(0);
    let place = info.location();
    crate::emit!(Panic {
        message: info.payload_as_str().unwrap_or_default(),
        file: place.map_or("", |place| place.file()),
        line: place.map_or(0, |place| place.line()),
    });
    // A forked child has a panic of its own.
    if ASKED.swap(std::process::id(), Relaxed) != std::process::id() {
        let _ = ask(Asker::Panic);
    }
}

fn ask(asker: Asker) -> Result<PathBuf, SnapshotError> {
    let mut result = Err(SnapshotError::NotRecorded);
    for recorder in agent::recorders() {
        result = ask_one(&recorder, asker);
        if result.is_ok() {
            break;
        }
    }
    result
}

fn ask_one(recorder: &agent::Access, asker: Asker) -> Result<PathBuf, SnapshotError> {
    let mut buffer = vec![0; LARGEST_ANSWER];
    match agent::ask_for_snapshot(recorder, asker, &mut buffer)? {
        Taken::Folder(folder) => Ok(folder.into()),
        Taken::NotFlightRecorder => Err(SnapshotError::NotFlightRecorder),
        Taken::NotWanted => Err(SnapshotError::NotWanted),
        Taken::Failed(why) => Err(SnapshotError::Failed(why.to_owned())),
    }
}
