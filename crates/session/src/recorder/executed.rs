//! Programs that the command has executed, as the kernel reports them. Reports to the user which of them do
//! not load the library that records locks and functions.

use std::iter;
use std::path::{Path, PathBuf};

use tracewing_units::Pid;

use super::Recorder;

/// The most programs that are named.
const MOST_REASONS: usize = 8;

impl Recorder<'_> {
    /// Reports those of these files, with the processes that have executed them, into which nothing can be
    /// pre-loaded.
    pub(crate) fn note_executed(&mut self, executed: Vec<(Pid, PathBuf)>) {
        let Some(preload) = self.options.preload.as_ref().filter(|_| !self.options.system_wide) else {
            return;
        };
        for (pid, path) in executed {
            let others = self.connections.members().map(|(_, member)| member.program.pid);
            if self.watches.obstacles < MOST_REASONS
                && let Some(note) = preload.of_executed(&path, &file(&path, iter::once(pid).chain(others)))
            {
                self.watches.obstacles += 1;
                self.join.note(note);
            }
        }
    }
}

/// Where a path leads that a process has given to the kernel. The process may be gone; most are where others
/// of the recording are, or where the recorder is.
fn file(path: &Path, processes: impl Iterator<Item = Pid>) -> PathBuf {
    let mut seen = processes.map(|pid| PathBuf::from(format!("/proc/{pid}/cwd")).join(path));
    seen.find(|file| path.is_relative() && file.exists()).unwrap_or_else(|| path.to_owned())
}
