//! Running recordings of this machine: finds them, requests snapshots from them, and changes them.
//!
//! Every recorder has a folder for its sockets (see `socket`), so there is nothing to set up. Only
//! recorders of one user are found: the user of this process, or another one that root names. A folder is
//! used only if that user owns it and others cannot write to it. No link is followed. The listening process
//! must belong to that user and have the process id that it reports. Every wait has a limit.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, Dir, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::process::{Pid as KernelPid, PidfdFlags, Signal, getuid, pidfd_open, pidfd_send_signal};
use tracewing_abi::message::MAX_MESSAGE;
use tracewing_abi::message::control::{Answer, Control, decode_answer};
use tracewing_abi::message::join::Join;
use tracewing_abi::message::snapshot::{Asker, LARGEST_ANSWER, Question, Taken};
use tracewing_units::Pid;

pub use crate::ask::{AskError, Kind, Running, Unseen};
use crate::change::{Change, Changed};
use crate::contact::{Absent, asked, connection};
use crate::credentials::is_alive;
use crate::survey::ask_all;
use crate::{listing, socket};

/// Time that recorders have to say what they are.
const PATIENCE: Duration = Duration::from_secs(2);
/// Time that it has to write a snapshot, or the rest of an archive.
const SNAPSHOT_PATIENCE: Duration = Duration::from_secs(120);
/// More time for the end, once it does not wait for the command of `--on-archive` any more.
const END_PATIENCE: Duration = Duration::from_secs(20);
/// Time that it has to make a change: longer than it waits for its programs.
const CHANGE_PATIENCE: Duration = Duration::from_secs(10);

/// The recordings that this user may ask.
#[derive(Debug, Clone, Default)]
pub struct Recordings {
    /// Those that answer, in the order of their recorders' process ids.
    pub running: Vec<Running>,
    /// Process ids of recorders that take questions and do not answer: they were stopped, or are another
    /// version's.
    pub silent: Vec<Pid>,
    /// Where others may run that could not be asked.
    pub unseen: Vec<Unseen>,
}

/// A recorder that does not answer, as far as its command line says what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Silent {
    /// Its process id.
    pub pid: Pid,
    /// Its session and channel or trigger; `None` if that cannot be read.
    pub name: Option<String>,
    /// Whether it is not one that `rotate` and `snapshot` are for: the recorder of a trigger.
    pub is_trigger: bool,
    /// Whether it is a flight recorder.
    pub is_flight_recorder: bool,
}

impl Recordings {
    /// Finds the running recordings of this user.
    pub fn find() -> Self {
        Self::of(getuid().as_raw())
    }

    /// Finds those of a user, which others than root cannot ask.
    pub fn of(user: u32) -> Self {
        let mut this = Self::default();
        let mut folders = BTreeSet::new();
        for parent in parents(user) {
            match recorders_in(&parent) {
                Ok(found) => folders.extend(found),
                Err(error) => this.unseen.push(Unseen::at(parent, error)),
            }
        }
        for (folder, found) in ask_all(folders, user, PATIENCE) {
            match found {
                Ok(running) => this.running.push(running),
                Err(Absent::Silent(pid)) => this.silent.push(pid),
                Err(Absent::Unknown(error)) => this.unseen.push(Unseen::at(folder, error)),
                Err(Absent::NoRecorder) => {}
            }
        }
        this.running.sort_by_key(|one| one.pid);
        this.silent.sort_unstable();
        this
    }

    /// Those that do not answer and may be recorders of a session: not those that were started as another
    /// session's, or as none's.
    pub fn silent_of(&self, session: &str) -> Vec<Silent> {
        let described = self.silent.iter().map(|pid| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            (line.is_empty(), Silent::from_command_line(*pid, &line))
        });
        let may_be = |(is_unknown, silent): (bool, Silent)| {
            let of = silent.name.as_deref().and_then(|name| Some(name.split_once('/')?.0));
            (is_unknown || of == Some(session)).then_some(silent)
        };
        described.filter_map(may_be).collect()
    }

    /// The recordings that are meant: those of the kind that a session consists of if the word is its name,
    /// without those of its triggers; otherwise the one that [`Recordings::choose`] gives.
    ///
    /// # Errors
    /// As those of [`Recordings::choose`].
    pub fn choose_all(self, name: Option<&str>, kind: Kind) -> Result<Vec<Running>, AskError> {
        let of_session = name.map(|name| self.of_session(name, kind)).unwrap_or_default();
        if of_session.is_empty() { self.choose(name, kind).map(|one| vec![one]) } else { Ok(of_session) }
    }

    /// Those of the kind that a session consists of, without those of its triggers.
    pub fn of_session(&self, name: &str, kind: Kind) -> Vec<Running> {
        let is_of_session = |one: &&Running| {
            let session = one.name.split_once('/').map(|(session, _)| session);
            session == Some(name) && !one.is_trigger && kind.has(one)
        };
        let mut of_session: Vec<Running> = self.running.iter().filter(is_of_session).cloned().collect();
        // These have no archives; if it is only they that could be meant, they say so.
        if kind == Kind::Any && of_session.iter().any(|one| !one.is_flight_recorder) {
            of_session.retain(|one| !one.is_flight_recorder);
        }
        of_session
    }

    /// The one recording that is meant: by its name, by its process id, its command's, or that of a process
    /// that it records, or by the command's name; without a word the only one of the kind.
    ///
    /// # Errors
    /// None or several could be meant, or one that does not answer, or the one that is meant is not of the
    /// kind.
    pub fn choose(self, name: Option<&str>, kind: Kind) -> Result<Running, AskError> {
        let Self { mut running, silent, unseen } = self;
        let mut meant = running.clone();
        if let Some(name) = name {
            // A recorder can be the command of another one, and its programs can be the other one's, too.
            let ways: [fn(&Running, &str) -> bool; 4] = [
                |one, name| one.pid.to_string() == name,
                Running::is_named,
                Running::is_called,
                Running::has_process,
            ];
            let found = ways.iter().map(|way| running.iter().filter(|one| way(one, name)).cloned().collect());
            meant = found.into_iter().find(|found: &Vec<Running>| !found.is_empty()).unwrap_or_default();
            // The name of a session is that of its channels, before it is that of its triggers.
            let is_channel = |one: &Running| !one.is_trigger;
            if meant.iter().all(|one| one.name != name) && meant.iter().any(is_channel) {
                meant.retain(is_channel);
            }
        }
        if name.is_none() || meant.is_empty() {
            if !silent.is_empty() {
                return Err(AskError::Silent(silent, running));
            }
            if !unseen.is_empty() {
                return Err(AskError::Unseen(unseen, running));
            }
        }
        if let Some(name) = name
            && meant.is_empty()
            && !running.is_empty()
        {
            return Err(AskError::NoSuch { name: name.to_owned(), running });
        }
        let none = meant.first().map_or(AskError::NoneRuns(kind), |one| AskError::NotFlightRecorder(one.pid));
        running = meant.into_iter().filter(|one| kind.has(one)).collect();
        match running.len() {
            0 => Err(none),
            1 => Ok(running.remove(0)),
            _ => Err(AskError::Several(kind, running)),
        }
    }
}

impl Unseen {
    fn at(place: PathBuf, error: Errno) -> Self {
        Self { place, why: why(error) }
    }
}

/// Why a recorder cannot be asked, and what to do.
fn why(error: Errno) -> String {
    match error {
        Errno::MFILE => format!("{error}: raise the limit (`ulimit -n`)"),
        Errno::AGAIN => "a recorder accepts no connection: it was stopped, or hangs".to_owned(),
        error => error.to_string(),
    }
}

impl Silent {
    /// Whether a word is its name, or that of its session, as far as that is known.
    pub fn is_named(&self, word: &str) -> bool {
        let is_of = |name: &str| name == word || name.split_once('/').is_some_and(|(of, _)| of == word);
        self.name.as_deref().is_some_and(is_of)
    }

    /// Whether it may be a channel of the kind, as far as what it is can be read.
    pub fn may_be(&self, kind: Kind) -> bool {
        let is_of_kind = self.is_flight_recorder == (kind == Kind::FlightRecorder);
        self.name.is_none() || !self.is_trigger && is_of_kind
    }

    fn from_command_line(pid: Pid, line: &[u8]) -> Self {
        let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
        let name = words.iter().skip_while(|word| **word != b"--session").nth(1);
        Self {
            pid,
            name: name.map(|name| String::from_utf8_lossy(name).into_owned()),
            is_trigger: words.iter().any(|word| word.starts_with(b"--on=")),
            is_flight_recorder: words.contains(&b"--flight-recorder".as_slice()),
        }
    }
}

impl Running {
    /// Has a snapshot taken and waits until it is written; gives its folder.
    ///
    /// # Errors
    /// The recorder is gone or cannot write it.
    pub fn snapshot(&self) -> Result<PathBuf, AskError> {
        let mut buffer = vec![0; LARGEST_ANSWER];
        let question = Question::Snapshot(Asker::Command).encode();
        match Taken::decode(self.ask(&question, SNAPSHOT_PATIENCE, &mut buffer)?) {
            Ok(Taken::Folder(folder)) => Ok(folder.into()),
            Ok(Taken::NotFlightRecorder | Taken::NotWanted) => Err(AskError::NotFlightRecorder(self.pid)),
            Ok(Taken::Failed(why)) => Err(AskError::Failed(why.to_owned())),
            Err(_) => Err(AskError::NoAnswer(self.pid)),
        }
    }

    /// Has the present archive completed and waits until it is written; gives its folder.
    ///
    /// # Errors
    /// The recorder is gone or refuses.
    pub fn rotate(&self) -> Result<PathBuf, AskError> {
        self.next_archive(Question::Rotate)
    }

    /// Has everything removed that was recorded since the last rotation, and waits for that; gives the folder
    /// in which the recording continues.
    ///
    /// # Errors
    /// The recorder is gone or refuses.
    pub fn clear(&self) -> Result<PathBuf, AskError> {
        self.next_archive(Question::Clear)
    }

    fn next_archive(&self, question: Question) -> Result<PathBuf, AskError> {
        let mut buffer = vec![0; LARGEST_ANSWER];
        match Taken::decode(self.ask(&question.encode(), SNAPSHOT_PATIENCE, &mut buffer)?) {
            Ok(Taken::Folder(folder)) => Ok(folder.into()),
            Ok(Taken::Failed(why)) => Err(AskError::Refused(self.pid, why.to_owned())),
            Ok(Taken::NotFlightRecorder | Taken::NotWanted) | Err(_) => Err(AskError::NoAnswer(self.pid)),
        }
    }

    /// Ends the recording as a signal does, and gives what can be waited for.
    ///
    /// # Errors
    /// The recorder is gone, or does not answer.
    pub fn end(&self) -> Result<Ending, AskError> {
        let gone = || AskError::NoAnswer(self.pid);
        let pid = KernelPid::from_raw(self.pid.0).ok_or_else(gone)?;
        let process = pidfd_open(pid, PidfdFlags::empty()).map_err(|error| match error {
            Errno::SRCH => gone(),
            error => AskError::NotAsked(self.pid, why(error)),
        })?;
        // Afterwards, so that the process that answers is the one that was opened.
        let mut buffer = vec![0; LARGEST_ANSWER];
        self.ask(&Question::Status.encode(), PATIENCE, &mut buffer)?;
        pidfd_send_signal(&process, Signal::TERM).map_err(|_| gone())?;
        Ok(Ending { process, until: Instant::now() + SNAPSHOT_PATIENCE })
    }

    /// Changes the recording, and waits until its programs have confirmed that, for some seconds at most.
    ///
    /// # Errors
    /// The recorder is gone, or refuses.
    pub fn change(&self, change: &Change) -> Result<Changed, AskError> {
        let question = change.encode().map_err(|_| AskError::TooLarge)?;
        let mut buffer = vec![0; MAX_MESSAGE];
        let answer = self.ask(&question, CHANGE_PATIENCE, &mut buffer)?;
        let (answer, items) = decode_answer(answer).map_err(|_| AskError::NoAnswer(self.pid))?;
        match answer {
            Answer::Refused(why) => Err(AskError::Refused(self.pid, why.to_owned())),
            Answer::Changed(effect) => Ok(Changed::new(&effect, items)),
        }
    }

    /// Has the programs of the recording, those that join it later included, join the recorder that listens
    /// at a path. They do so afterwards, in their own time.
    ///
    /// # Errors
    /// The recorder is gone, or refuses.
    pub(crate) fn invite(&self, path: &Path) -> Result<(), AskError> {
        let mut message = [0; Control::HEADER + Join::LONGEST_PATH];
        let encoded = Control::Invite(path.as_os_str().as_bytes()).encode(&mut message);
        let len = encoded.map_err(|_| AskError::TooLarge)?;
        let mut buffer = vec![0; MAX_MESSAGE];
        let answer = self.ask(&message[..len], CHANGE_PATIENCE, &mut buffer)?;
        match decode_answer(answer) {
            Ok((Answer::Changed(_), _)) => Ok(()),
            Ok((Answer::Refused(why), _)) => Err(AskError::Refused(self.pid, why.to_owned())),
            Err(_) => Err(AskError::NoAnswer(self.pid)),
        }
    }

    /// Asks the recorder.
    ///
    /// # Errors
    /// There is no answer in time, or the recorder cannot be asked.
    fn ask<'a>(
        &self,
        question: &[u8],
        patience: Duration,
        buffer: &'a mut [u8],
    ) -> Result<&'a [u8], AskError> {
        match connection(&self.folder, self.user, Some(patience)) {
            Ok((connection, pid, _)) if pid == self.pid => asked(&connection, question, buffer),
            Err(Absent::Unknown(error)) => return Err(AskError::NotAsked(self.pid, why(error))),
            Ok(_) | Err(_) => None,
        }
        .ok_or(AskError::NoAnswer(self.pid))
    }

    /// Whether a word is the recording's name, or that of the session that it is a channel of.
    pub fn is_named(&self, word: &str) -> bool {
        !word.is_empty()
            && (self.name == word || self.name.split_once('/').is_some_and(|(session, _)| session == word))
    }

    /// Whether it is to record all programs of this user, and those that start now join too many others
    /// before it.
    pub fn is_crowded_out(&self) -> bool {
        self.user == getuid().as_raw() && listing::is_crowded_out(&self.folder) == Some(true)
    }

    fn is_called(&self, word: &str) -> bool {
        let program = Path::new(self.command.split(' ').next().unwrap_or_default());
        self.command_pid.to_string() == word
            || program.as_os_str() == word
            || program.file_name() == Some(OsStr::new(word))
    }

    fn has_process(&self, word: &str) -> bool {
        self.processes.iter().any(|pid| pid.to_string() == word)
    }
}

/// A recorder that is ending.
#[derive(Debug)]
pub struct Ending {
    process: OwnedFd,
    until: Instant,
}

impl Ending {
    /// Waits until it has written the rest, and the command of `--on-archive` has ended, which is killed if
    /// that takes too long.
    ///
    /// # Errors
    /// It takes too long.
    pub fn wait(&self, of: &Running) -> Result<(), AskError> {
        if self.has_ended_by(self.until) {
            return Ok(());
        }
        // It waits for nothing any more then.
        let _ = pidfd_send_signal(&self.process, Signal::TERM);
        if self.has_ended_by(Instant::now() + END_PATIENCE) { Ok(()) } else { Err(AskError::NoEnd(of.pid)) }
    }

    fn has_ended_by(&self, until: Instant) -> bool {
        while is_alive(&self.process) {
            let left = until.saturating_duration_since(Instant::now());
            let Some(left) = Timespec::try_from(left).ok().filter(|_| !left.is_zero()) else { return false };
            let _ = poll(&mut [PollFd::new(&self.process, PollFlags::IN)], Some(&left));
        }
        true
    }
}

/// Where recorders of a user can have their folders, with or without the variables of a login session.
fn parents(user: u32) -> BTreeSet<PathBuf> {
    let mut parents = BTreeSet::from(["/tmp".into(), Path::new("/run/user").join(user.to_string())]);
    if user == getuid().as_raw() {
        parents.insert(socket::parent_folder());
    }
    parents
}

/// The folders of recorders in this one.
///
/// # Errors
/// It cannot be read now.
fn recorders_in(parent: &Path) -> rustix::io::Result<Vec<PathBuf>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let entries = match openat(CWD, parent, flags, Mode::empty()) {
        Ok(folder) => Dir::read_from(&folder)?,
        Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS | Errno::PERM) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if socket::is_recorders(name) {
            found.push(parent.join(name));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracewing_abi::message::snapshot::Figures;

    fn running(pid: i32, is_flight_recorder: bool, command: &str) -> Running {
        Running {
            folder: PathBuf::new(),
            user: 0,
            pid: Pid(pid),
            command_pid: Pid(pid + 1),
            processes: vec![Pid(pid + 2)],
            is_flight_recorder,
            is_trigger: false,
            figures: Figures::default(),
            name: String::new(),
            command: command.to_owned(),
            output: "/t".into(),
        }
    }

    #[test]
    fn the_one_that_is_meant_is_found() {
        let one = running(10, true, "/usr/bin/server --port 1");
        let all = vec![one.clone(), running(20, false, "make"), running(30, false, "server")];
        let found = |all: &[Running]| Recordings { running: all.to_vec(), ..Recordings::default() };
        let flight = |all: &[Running], word| found(all).choose(word, Kind::FlightRecorder);
        for word in [None, Some("10"), Some("11"), Some("12"), Some("server"), Some("/usr/bin/server")] {
            assert_eq!(flight(&all, word).unwrap(), one, "{word:?}");
        }
        let error = |all: &[Running], word| flight(all, word).unwrap_err().to_string();
        assert!(error(&[], None).contains("no recording is running"));
        assert!(error(&[], Some("1")).contains("record --flight-recorder --"));
        assert!(error(&all, Some("make")).contains("20 is not a flight recorder"));
        assert!(error(&all[1..], None).contains("20 is not a flight recorder"));
        assert!(error(&all, Some("nobody")).contains("\n  20 (recorder of make, into /t)"));
        // If two recorders record a process, the one that started it as its command is meant.
        let both = [Running { processes: vec![Pid(11)], ..running(40, true, "make") }, one.clone()];
        assert_eq!(flight(&both, Some("11")).unwrap(), one);
        let two = [one, running(40, true, "server")];
        assert!(
            error(&two, None).contains("\n  10 (flight recorder of /usr/bin/server --port 1, into /t)\n  40")
        );
        assert_eq!(flight(&two, Some("40")).unwrap().pid, Pid(40));

        let any = |all: &[Running], word| found(all).choose(word, Kind::Any);
        assert_eq!(any(&all, Some("make")).unwrap().pid, Pid(20));
        assert_eq!(any(&all[1..2], None).unwrap().pid, Pid(20));
        assert!(any(&all, None).unwrap_err().to_string().contains("several recordings are running"));
        assert!(any(&all, Some("server")).unwrap_err().to_string().contains("\n  30"));
        assert!(any(&[], None).unwrap_err().to_string().contains("record -- CMD"));
        assert!(any(&all, None).unwrap_err().to_string().contains("name one by its process id:\n"));
    }

    #[test]
    fn a_session_is_named_for_its_channels() {
        let named = |pid, name: &str| Running { name: name.to_owned(), ..running(pid, false, "") };
        let (main, other) = (named(10, "web/main"), named(20, "web/other"));
        let hit = Running { is_trigger: true, ..named(30, "web/hit") };
        let any = |all: &[Running], word| {
            Recordings { running: all.to_vec(), ..Recordings::default() }.choose(Some(word), Kind::Any)
        };
        assert_eq!(any(&[main.clone(), hit.clone()], "web").unwrap(), main, "a trigger is not meant");
        assert_eq!(any(&[main.clone(), hit.clone()], "web/hit").unwrap(), hit);
        assert_eq!(any(std::slice::from_ref(&hit), "web").unwrap(), hit, "there is nothing else");
        let error = any(&[main, other, hit], "web").unwrap_err().to_string();
        let how = "name one by SESSION/CHANNEL (such as web/main) or by its process id:\n  10 ";
        assert!(error.contains(how) && !error.contains("\n  30"), "{error}");
    }

    #[test]
    fn what_does_not_answer_is_known_by_its_command_line() {
        let line = b"tracewing\0record\0--session\0web/main\0--background\0--flight-recorder\0";
        let silent = Silent::from_command_line(Pid(7), line);
        let name = Some("web/main".to_owned());
        assert_eq!(silent, Silent { pid: Pid(7), name, is_trigger: false, is_flight_recorder: true });
        let line = b"tracewing\0record\0--session\0web/hit\0--on=web\0";
        assert!(Silent::from_command_line(Pid(7), line).is_trigger);
        assert_eq!(Silent::from_command_line(Pid(7), b"tracewing\0record\0").name, None);
        // This process was started as no recorder.
        let found = Recordings { silent: vec![Pid(std::process::id() as i32)], ..Recordings::default() };
        assert_eq!(found.silent_of("web"), []);
        let gone = Recordings { silent: vec![Pid(i32::MAX)], ..Recordings::default() };
        assert_eq!(gone.silent_of("web").len(), 1, "it may be");
    }

    #[test]
    fn one_that_does_not_answer_may_be_the_one() {
        let running = || vec![running(20, false, "make")];
        let found =
            || Recordings { running: running(), silent: vec![Pid(7), Pid(10)], ..Recordings::default() };
        assert_eq!(found().choose(Some("make"), Kind::Any).unwrap().pid, Pid(20));
        for word in [None, Some("10"), Some("server")] {
            let error = found().choose(word, Kind::Any).unwrap_err().to_string();
            assert!(
                error.contains("(process 7, 10)") && error.contains("\n  20 (recorder of make"),
                "{error}"
            );
        }
    }
    #[test]
    fn one_that_cannot_be_asked_may_be_the_one() {
        let unseen = vec![Unseen::at("/tmp/tracewing-1".into(), Errno::MFILE)];
        let found = || Recordings {
            running: vec![running(20, false, "make")],
            unseen: unseen.clone(),
            ..Recordings::default()
        };
        assert_eq!(found().choose(Some("make"), Kind::Any).unwrap().pid, Pid(20));
        for word in [None, Some("server")] {
            let error = found().choose(word, Kind::Any).unwrap_err().to_string();
            let expected = "/tmp/tracewing-1: Too many open files";
            assert!(
                error.contains(expected) && error.contains("ulimit -n") && error.contains("\n  20"),
                "{error}"
            );
        }
    }
}
