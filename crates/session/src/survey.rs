//! Asks many recorders at once what they are, so that those that do not answer keep no time from the others.

use std::mem;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use tracewing_abi::message::snapshot::{LARGEST_ANSWER, Question, Status};
use tracewing_units::Pid;

use crate::ask::Running;
use crate::contact::{Absent, Connection, connection};
use crate::credentials::is_alive;

/// Time until the next attempt to connect to a recorder at which too many others wait.
const AGAIN: Duration = Duration::from_millis(20);

/// What was found in the folder of a recorder.
pub(crate) type Found = (PathBuf, Result<Running, Absent>);

/// Asks the recorders of a user with these folders, and waits for their answers so long.
pub(crate) fn ask_all(
    folders: impl IntoIterator<Item = PathBuf>,
    user: u32,
    patience: Duration,
) -> Vec<Found> {
    let until = Instant::now() + patience;
    let mut survey = Survey { user, ..Survey::default() };
    survey.waiting.extend(folders);
    loop {
        survey.connect();
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || (survey.waiting.is_empty() && survey.asked.is_empty()) {
            break;
        }
        survey.wait(if survey.waiting.is_empty() { left } else { left.min(AGAIN) });
        survey.take_answers();
    }
    survey.finish()
}

#[derive(Default)]
struct Survey {
    user: u32,
    /// Those that could not be asked so far.
    waiting: Vec<PathBuf>,
    /// Those that have yet to answer.
    asked: Vec<(PathBuf, Connection)>,
    found: Vec<Found>,
}

impl Survey {
    /// Asks those that can be asked now.
    fn connect(&mut self) {
        for folder in mem::take(&mut self.waiting) {
            match ask(&folder, self.user) {
                Ok(connection) => self.asked.push((folder, connection)),
                Err(why) if self.may_be_asked_later(why) => self.waiting.push(folder),
                Err(why) => self.found.push((folder, Err(why))),
            }
        }
    }

    /// Others wait there for the recorder, or this process has too many descriptors until others have
    /// answered.
    fn may_be_asked_later(&self, why: Absent) -> bool {
        match why {
            Absent::Silent(_) | Absent::Unknown(Errno::AGAIN) => true,
            Absent::Unknown(Errno::MFILE | Errno::NFILE) => !self.asked.is_empty(),
            Absent::Unknown(_) | Absent::NoRecorder => false,
        }
    }

    /// Waits until one has answered or ended.
    fn wait(&self, most: Duration) {
        let mut files: Vec<PollFd<'_>> =
            self.asked.iter().map(|(_, (socket, ..))| PollFd::new(socket, PollFlags::IN)).collect();
        // A time of two seconds at most.
        let most = Timespec::try_from(most).ok();
        let _ = poll(&mut files, most.as_ref());
    }

    fn take_answers(&mut self) {
        let mut buffer = vec![0; LARGEST_ANSWER];
        for (folder, (socket, pid, process)) in mem::take(&mut self.asked) {
            match retry_on_intr(|| recv(&socket, &mut *buffer, RecvFlags::empty())) {
                Err(Errno::AGAIN) => self.asked.push((folder, (socket, pid, process))),
                Ok((len, _)) if len > 0 => {
                    let described = described(&folder, self.user, pid, buffer.get(..len).unwrap_or_default());
                    self.found.push((folder, described));
                }
                _ => self.found.push((folder, Err(unanswered(pid, &process)))),
            }
        }
    }

    /// What was found, and what is known of those that have not answered.
    fn finish(mut self) -> Vec<Found> {
        for (folder, (_, pid, process)) in mem::take(&mut self.asked) {
            self.found.push((folder, Err(unanswered(pid, &process))));
        }
        for folder in mem::take(&mut self.waiting) {
            let absent = ask(&folder, self.user).map_or_else(|why| why, |(_, pid, _)| Absent::Silent(pid));
            self.found.push((folder, Err(absent)));
        }
        self.found
    }
}

/// Asks the recorder of a folder, if that is possible at once.
fn ask(folder: &Path, user: u32) -> Result<Connection, Absent> {
    let connection = connection(folder, user, None)?;
    let (socket, pid, process) = &connection;
    match retry_on_intr(|| send(socket, &Question::Status.encode(), SendFlags::NOSIGNAL)) {
        Ok(_) => Ok(connection),
        Err(_) => Err(unanswered(*pid, process)),
    }
}

/// One that has ended meanwhile is none.
fn unanswered(pid: Pid, process: &OwnedFd) -> Absent {
    if is_alive(process) { Absent::Silent(pid) } else { Absent::NoRecorder }
}

/// The recording of a folder, by the answer of its recorder.
fn described(folder: &Path, user: u32, pid: Pid, answer: &[u8]) -> Result<Running, Absent> {
    let status = Status::decode(answer).map_err(|_| Absent::Silent(pid))?;
    // It is not what it says it is.
    if status.pid != pid.as_unsigned() {
        return Err(Absent::NoRecorder);
    }
    Ok(Running {
        pid,
        command_pid: Pid::from_unsigned(status.command_pid),
        processes: status.processes.into_iter().filter(|pid| *pid != 0).map(Pid::from_unsigned).collect(),
        is_flight_recorder: status.is_flight_recorder,
        is_trigger: status.is_trigger,
        figures: status.figures,
        name: status.name.to_owned(),
        command: status.command.to_owned(),
        output: status.output.into(),
        folder: folder.to_owned(),
        user,
    })
}
