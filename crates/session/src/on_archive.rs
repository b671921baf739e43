//! The command of `--on-archive`: run for each archive that is complete, one after the other, on a thread of
//! its own. The recorder never waits for it while it records; archives wait their turn.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Builder;

use crate::outcome::CommandTotals;
use crate::runner::Runner;

/// The command, and the archives that wait for it.
pub(crate) struct OnArchive {
    command: OsString,
    /// Numbers and paths.
    waiting: VecDeque<(u64, PathBuf)>,
    /// The archive on which it works.
    running: Option<(u64, PathBuf)>,
    jobs: Sender<PathBuf>,
    /// Why each has failed, or `None`.
    results: Receiver<Option<String>>,
    pub totals: CommandTotals,
}

impl OnArchive {
    /// Nothing to do yet. To be called before the priority of this thread is raised: the command has the one
    /// that the recorder was started with.
    ///
    /// # Errors
    /// There is no thread for it.
    pub(crate) fn new(command: OsString, runner: Runner) -> io::Result<Self> {
        let (jobs, next) = channel::<PathBuf>();
        let (done, results) = channel();
        let name = command.clone();
        let work = move || {
            for path in next {
                if done.send(runner.run(&name, Some(&path))).is_err() {
                    break;
                }
            }
        };
        Builder::new().name("tracewing-archive".to_owned()).spawn(work)?;
        let (waiting, running, totals) = (VecDeque::new(), None, CommandTotals::default());
        Ok(Self { command, waiting, running, jobs, results, totals })
    }

    /// An archive is complete.
    pub(crate) fn push(&mut self, number: u64, path: PathBuf) {
        self.waiting.push_back((number, path));
    }

    /// Takes the result of the command, and begins the next one. Gives a line for the user about the first
    /// one that fails.
    pub(crate) fn look(&mut self) -> Option<String> {
        let mut line = None;
        if self.running.is_some()
            && let Ok(result) = self.results.try_recv()
        {
            let path = self.running.take().map(|(_, path)| path).unwrap_or_default();
            self.totals.run += 1;
            if let Some(why) = result {
                self.totals.failed += 1;
                let command = self.command.to_string_lossy();
                line = (self.totals.failed == 1)
                    .then(|| format!("--on-archive: {command} has failed for {}: {why}", path.display()));
            }
        }
        if self.running.is_none()
            && let Some(next) = self.waiting.pop_front()
            && self.jobs.send(next.1.clone()).is_ok()
        {
            self.running = Some(next);
        }
        line
    }

    /// The archive on which it works.
    pub(crate) fn working_on(&self) -> Option<(u64, &Path)> {
        self.running.as_ref().map(|(number, path)| (*number, path.as_path()))
    }

    /// An archive is gone: the command is not run for it any more.
    pub(crate) fn skip(&mut self, number: u64) {
        let before = self.waiting.len();
        self.waiting.retain(|(waiting, _)| *waiting != number);
        self.totals.skipped += (before - self.waiting.len()) as u64;
    }

    /// Gives up those that wait.
    pub(crate) fn skip_all(&mut self) {
        self.totals.skipped += self.waiting.len() as u64 + u64::from(self.running.is_some());
        self.waiting.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(commands: &mut OnArchive) -> Vec<String> {
        let mut lines = Vec::new();
        while {
            lines.extend(commands.look());
            commands.working_on().is_some()
        } {
            std::thread::yield_now();
        }
        lines
    }

    #[test]
    fn each_archive_gets_its_command_in_order() {
        let mut commands = OnArchive::new("mkdir".into(), Runner::default()).unwrap();
        let place = tempfile::tempdir().unwrap();
        // Each needs the one before.
        let paths = ["a", "a/b", "a/b/c"].map(|path| place.path().join(path));
        (1..).zip(&paths).for_each(|(number, path)| commands.push(number, path.clone()));
        assert_eq!(wait(&mut commands), [""; 0]);
        assert!(paths[2].is_dir());
        assert_eq!(commands.totals, CommandTotals { run: 3, failed: 0, skipped: 0 });
    }

    #[test]
    fn failures_are_said_once_and_counted() {
        for (command, why) in [("false", "exit status 1"), ("/no/such/command", "No such file")] {
            let mut commands = OnArchive::new(command.into(), Runner::default()).unwrap();
            (1..=3).for_each(|number| commands.push(number, "/archive".into()));
            commands.skip(3);
            let lines = wait(&mut commands);
            assert!(lines.len() == 1 && lines[0].contains(why) && lines[0].contains("/archive"), "{lines:?}");
            assert_eq!(commands.totals, CommandTotals { run: 2, failed: 2, skipped: 1 });
        }
    }
}
