//! The command of `--on-archive`: run for each archive that is complete, one after the other, on a thread of
//! its own, for a limited time. The recorder never waits for it while it records; archives wait their turn.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Builder;

use tracewing_abi::message::snapshot::Commands;

use crate::options::ArchiveCommand;
use crate::outcome::CommandTotals;
use crate::runner::{Purpose, Runner};

/// Different reasons for failures that are said; all are counted.
const MOST_REASONS: usize = 8;

/// The command, and the archives that wait for it.
pub(crate) struct OnArchive {
    command: OsString,
    runner: Runner,
    /// Numbers and paths.
    waiting: VecDeque<(u64, PathBuf)>,
    /// The archive on which it works.
    running: Option<(u64, PathBuf)>,
    jobs: Sender<PathBuf>,
    /// Why each has failed, or `None`.
    results: Receiver<Option<String>>,
    /// Reasons for failures that were said.
    reasons: Vec<String>,
    /// Lines for the user.
    lines: Vec<String>,
    pub totals: CommandTotals,
}

impl OnArchive {
    /// Nothing to do yet. To be called before the priority of this thread is raised: the command has the one
    /// that the recorder was started with.
    ///
    /// # Errors
    /// There is no thread for it.
    pub(crate) fn new(command: ArchiveCommand, runner: Runner) -> io::Result<Self> {
        let (jobs, next) = channel::<PathBuf>();
        let (done, results) = channel();
        let ArchiveCommand { program: command, limit } = command;
        let (name, of_thread) = (command.clone(), runner.clone());
        let work = move || {
            for path in next {
                let failed = of_thread.run(Purpose::Archive, &name, Some(&path), limit);
                if done.send(failed).is_err() {
                    break;
                }
            }
        };
        Builder::new().name("tracewing-archive".to_owned()).spawn(work)?;
        let (waiting, running, totals) = (VecDeque::new(), None, CommandTotals::default());
        let (reasons, lines) = (Vec::new(), Vec::new());
        Ok(Self { command, runner, waiting, running, jobs, results, reasons, lines, totals })
    }

    /// An archive is complete.
    pub(crate) fn push(&mut self, number: u64, path: PathBuf) {
        self.waiting.push_back((number, path));
    }

    /// Takes the result of the command, and begins the next one. Gives lines for the user: about the first
    /// failure for each reason, and the first archive that was removed too early.
    pub(crate) fn look(&mut self) -> Vec<String> {
        if self.running.is_some()
            && let Ok(result) = self.results.try_recv()
        {
            let path = self.running.take().map(|(_, path)| path).unwrap_or_default();
            self.totals.run += 1;
            result.into_iter().for_each(|why| self.has_failed(&path, why));
        }
        if self.running.is_none()
            && let Some(next) = self.waiting.pop_front()
            && self.jobs.send(next.1.clone()).is_ok()
        {
            self.running = Some(next);
        }
        std::mem::take(&mut self.lines)
    }

    fn has_failed(&mut self, path: &Path, why: String) {
        self.totals.failed += 1;
        if self.reasons.len() < MOST_REASONS && !self.reasons.contains(&why) {
            let command = self.command.to_string_lossy();
            self.lines.push(format!("--on-archive: {command} has failed for {}: {why}", path.display()));
            self.reasons.push(why);
        }
    }

    /// The archive on which it works.
    pub(crate) fn working_on(&self) -> Option<(u64, &Path)> {
        self.running.as_ref().map(|(number, path)| (*number, path.as_path()))
    }

    /// An archive is gone: the command is not run for it any more.
    pub(crate) fn skip(&mut self, number: u64) {
        let Some(at) = self.waiting.iter().position(|(waiting, _)| *waiting == number) else { return };
        let Some((_, path)) = self.waiting.remove(at) else { return };
        self.totals.skipped += 1;
        if self.totals.skipped == 1 {
            self.lines.push(format!(
                "--on-archive: {} was not run for {}, which was removed before its turn, for want of room; later \
                 ones are only counted",
                self.command.to_string_lossy(),
                path.display()
            ));
        }
    }

    /// Gives up those that wait, and kills the command. Gives a line about that.
    pub(crate) fn skip_all(&mut self) -> String {
        let skipped = self.waiting.len() as u64 + u64::from(self.running.is_some());
        self.totals.skipped += skipped;
        self.waiting.clear();
        self.runner.end(Purpose::Archive);
        let command = self.command.to_string_lossy();
        format!(
            "--on-archive: {command} was killed, since the wait for it has ended; archives that it has not done: \
             {skipped}"
        )
    }

    /// How far it is.
    pub(crate) fn so_far(&self) -> Commands {
        let CommandTotals { run, failed, skipped } = self.totals;
        let waiting = self.waiting.len() as u64 + u64::from(self.running.is_some());
        Commands { run, failed, skipped, waiting }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};
    use tracewing_testing::wait_until;

    fn commands(program: impl Into<OsString>, limit: Duration) -> OnArchive {
        OnArchive::new(ArchiveCommand { program: program.into(), limit }, Runner::default()).unwrap()
    }

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
        let mut commands = commands("mkdir", Duration::from_secs(600));
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
            let mut commands = commands(command, Duration::from_secs(600));
            (1..=3).for_each(|number| commands.push(number, "/archive".into()));
            commands.skip(3);
            let lines = wait(&mut commands);
            let is_said = |line: &str, what: &str| line.contains(what) && line.contains("/archive");
            assert!(lines.len() == 2, "{lines:?}");
            assert!(is_said(&lines[0], "was not run") && is_said(&lines[1], why), "{lines:?}");
            assert_eq!(commands.totals, CommandTotals { run: 2, failed: 2, skipped: 1 });
        }
    }

    #[test]
    fn one_that_hangs_is_killed_and_the_next_one_runs() {
        let place = tempfile::tempdir().unwrap();
        let script = place.path().join("hangs");
        std::fs::write(&script, "#!/bin/sh\ncase $1 in */quick) exit 3;; esac\nexec sleep 1000\n").unwrap();
        rustix::fs::chmod(&script, rustix::fs::Mode::RWXU).unwrap();
        let mut commands = commands(script, Duration::from_secs(1));
        (1..).zip(["slow", "quick", "slow"]).for_each(|(number, name)| {
            commands.push(number, place.path().join(name));
        });
        let lines = wait(&mut commands);
        assert!(
            lines.len() == 2 && lines[0].contains("killed, since it ran for longer than 1 s"),
            "{lines:?}"
        );
        assert!(lines[1].contains("exit status 3"), "each reason is said once: {lines:?}");
        assert_eq!(commands.totals, CommandTotals { run: 3, failed: 3, skipped: 0 });
    }

    #[test]
    fn the_end_of_the_wait_kills_it() {
        let mut commands = commands("sleep", Duration::from_secs(1000));
        (1..=3).for_each(|number| commands.push(number, "1000".into()));
        assert!(commands.look().is_empty());
        assert_eq!(commands.so_far(), Commands { run: 0, failed: 0, skipped: 0, waiting: 3 });
        let begin = Instant::now();
        let line = commands.skip_all();
        assert!(line.contains("killed") && line.ends_with("not done: 3"), "{line}");
        assert_eq!(commands.totals.skipped, 3);
        wait_until("it is killed", || commands.results.try_recv().is_ok());
        assert!(begin.elapsed() < Duration::from_secs(500));
    }
}
