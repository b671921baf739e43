//! Limits of the recorder's process.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The limit on open files, raised as far as allowed: buffers per process need descriptors per process.
/// Gives what it was, which the recorded command is to get back.
pub(crate) fn raise_open_files() -> Rlimit {
    let before = getrlimit(Resource::Nofile);
    // Where it cannot be raised, the recording works until descriptors run out, and says so then.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: before.maximum, maximum: before.maximum });
    before
}

/// Files that this process may have open at once.
pub(crate) fn open_files() -> usize {
    getrlimit(Resource::Nofile)
        .current
        .map_or(usize::MAX, |files| usize::try_from(files).unwrap_or(usize::MAX))
}
