//! Recordings that run on this machine, found from outside: which there are, asking one for a snapshot, and changing one.
//!
//! Every recorder has a folder for its socket (see `socket`); whoever may list the folder above it finds them all. So
//! there is nothing to set up. Folders of other users are looked at by root only.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::retry_on_intr;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recv, send,
    socket_with,
};
use rustix::process::{Uid, getuid};
use tracewing_abi::message::MAX_MESSAGE;
use tracewing_abi::message::control::{Answer, Control, decode_answer};
use tracewing_abi::message::join::Join;
use tracewing_abi::message::snapshot::{Asker, LARGEST_ANSWER, Question, Status, Taken};

use crate::change::{Change, Changed};
use crate::socket::{self, SOCKET, peer};

/// Time that a recorder has to say what it is.
const PATIENCE: Duration = Duration::from_secs(2);
/// Time that it has to make a change: longer than it waits for its programs.
const CHANGE_PATIENCE: Duration = Duration::from_secs(10);

/// A recording that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    socket: PathBuf,
    /// The recorder's process id.
    pub pid: u32,
    /// The recorded command's.
    pub command_pid: u32,
    /// Whether it is a flight recorder.
    pub is_flight_recorder: bool,
    /// The recorded command, its words separated by spaces.
    pub command: String,
    /// The folder that it writes to.
    pub output: PathBuf,
}

/// The recordings that this user may ask.
#[derive(Debug, Clone, Default)]
pub struct Recordings {
    /// Those that answer, in the order of their recorders' process ids.
    pub running: Vec<Running>,
    /// Process ids of recorders that take questions and do not answer: they were stopped, or are another version's.
    pub silent: Vec<u32>,
}

/// Why a recording did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// No recording runs that this user may ask.
    #[error("no recording is running; start one with `tracewing record{} -- CMD`", options(.0))]
    NoneRuns(Kind),
    /// The word names no recording.
    #[error("no running recording is called {wanted:?}; there {}", listed(running))]
    NoSuch {
        /// The word.
        wanted: String,
        /// Those that run.
        running: Vec<Running>,
    },
    /// The one that is meant may be one of those that do not answer.
    #[error(
        "recorders that do not answer (process {}): stopped, or of another version of tracewing; say which recording is meant{}",
        pids(.0), others(.1)
    )]
    Silent(Vec<u32>, Vec<Running>),
    /// Several recordings could be meant.
    #[error("several {} are running, name one by its process id: {}", .0, lines(.1))]
    Several(Kind, Vec<Running>),
    /// It keeps everything on disk already.
    #[error(
        "process {0} is no flight recorder: its trace is on disk already (see `tracewing record --flight-recorder`)"
    )]
    NotFlightRecorder(u32),
    /// The recorder could not write a snapshot.
    #[error("the recorder could not take a snapshot: {0}")]
    Failed(String),
    /// The recorder does not make the change.
    #[error("the recorder (process {0}) refuses: {1}")]
    Refused(u32, String),
    /// The change does not fit a message.
    #[error("too many or too long patterns")]
    TooLarge,
    /// The connection broke: the recorder has ended, or is another version.
    #[error("the recorder (process {0}) gave no answer; it has ended, or is of another version of tracewing")]
    NoAnswer(u32),
}

/// Which recordings can be meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// All.
    Any,
    /// Flight recorders.
    FlightRecorder,
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Any => "recordings",
            Self::FlightRecorder => "flight recorders",
        })
    }
}

fn options(kind: &Kind) -> &'static str {
    match kind {
        Kind::Any => "",
        Kind::FlightRecorder => " --flight-recorder",
    }
}

fn listed(running: &[Running]) -> String {
    match running {
        [] => "is none".to_owned(),
        [one] => format!("is only {one}"),
        several => format!("are: {}", lines(several)),
    }
}

fn pids(silent: &[u32]) -> String {
    silent.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}

fn others(running: &[Running]) -> String {
    if running.is_empty() { String::new() } else { format!("; others:{}", lines(running)) }
}

fn lines(running: &[Running]) -> String {
    running.iter().map(|one| format!("\n  {one}")).collect()
}

impl std::fmt::Display for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = if self.is_flight_recorder { "flight recorder" } else { "recorder" };
        write!(f, "{} ({kind} of {}, into {})", self.pid, self.command, self.output.display())
    }
}

impl Recordings {
    /// Finds them.
    pub fn find() -> Self {
        let folders: BTreeSet<PathBuf> = parents().iter().flat_map(|parent| recorders_in(parent)).collect();
        let mut this = Self::default();
        for folder in folders {
            match Running::at(&folder.join(SOCKET)) {
                Ok(running) => this.running.push(running),
                Err(Some(pid)) => this.silent.push(pid),
                Err(None) => {}
            }
        }
        this.running.sort_by_key(|one| one.pid);
        this.silent.sort_unstable();
        this
    }

    /// The one recording that is meant: by its process id or its command's, or by the command's name; without a word the
    /// only one of the kind.
    ///
    /// # Errors
    /// None or several could be meant, or one that does not answer, or the one that is meant is not of the kind.
    pub fn choose(self, wanted: Option<&str>, kind: Kind) -> Result<Running, AskError> {
        let Self { mut running, silent } = self;
        let mut meant = running.clone();
        if let Some(wanted) = wanted {
            meant.retain(|one| one.is_called(wanted));
            // A recorder can be the command of another one.
            if meant.iter().any(|one| one.pid.to_string() == wanted) {
                meant.retain(|one| one.pid.to_string() == wanted);
            }
        }
        if !silent.is_empty() && (wanted.is_none() || meant.is_empty()) {
            return Err(AskError::Silent(silent, running));
        }
        if let Some(wanted) = wanted
            && meant.is_empty()
            && !running.is_empty()
        {
            return Err(AskError::NoSuch { wanted: wanted.to_owned(), running });
        }
        let none = meant.first().map_or(AskError::NoneRuns(kind), |one| AskError::NotFlightRecorder(one.pid));
        let is_one = |one: &Running| kind == Kind::Any || one.is_flight_recorder;
        running = meant.into_iter().filter(is_one).collect();
        match running.len() {
            0 => Err(none),
            1 => Ok(running.remove(0)),
            _ => Err(AskError::Several(kind, running)),
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
        let answer = ask(&self.socket, &question, None, &mut buffer);
        match answer.and_then(|answer| Taken::decode(answer).ok()) {
            Some(Taken::Folder(folder)) => Ok(folder.into()),
            Some(Taken::NotFlightRecorder | Taken::NotWanted) => Err(AskError::NotFlightRecorder(self.pid)),
            Some(Taken::Failed(why)) => Err(AskError::Failed(why.to_owned())),
            None => Err(AskError::NoAnswer(self.pid)),
        }
    }

    /// Changes the recording, and waits until its programs have confirmed that, for some seconds at most.
    ///
    /// # Errors
    /// The recorder is gone, or refuses.
    pub fn change(&self, change: &Change) -> Result<Changed, AskError> {
        let question = change.encode().map_err(|_| AskError::TooLarge)?;
        let mut buffer = vec![0; MAX_MESSAGE];
        let answer = ask(&self.socket, &question, Some(CHANGE_PATIENCE), &mut buffer);
        let (answer, items) =
            answer.and_then(|bytes| decode_answer(bytes).ok()).ok_or(AskError::NoAnswer(self.pid))?;
        match answer {
            Answer::Refused(why) => Err(AskError::Refused(self.pid, why.to_owned())),
            Answer::Changed(effect) => Ok(Changed::new(&effect, items)),
        }
    }

    /// Has the programs of the recording, those that join it later included, join the recorder that listens at a path.
    /// They do so afterwards, in their own time.
    ///
    /// # Errors
    /// The recorder is gone, or refuses.
    pub(crate) fn invite(&self, path: &Path) -> Result<(), AskError> {
        let mut message = [0; Control::HEADER + Join::LONGEST_PATH];
        let encoded = Control::Invite(path.as_os_str().as_bytes()).encode(&mut message);
        let len = encoded.map_err(|_| AskError::TooLarge)?;
        let mut buffer = vec![0; MAX_MESSAGE];
        let answer = ask(&self.socket, &message[..len], Some(CHANGE_PATIENCE), &mut buffer);
        match answer.and_then(|bytes| Some(decode_answer(bytes).ok()?.0)) {
            Some(Answer::Changed(_)) => Ok(()),
            Some(Answer::Refused(why)) => Err(AskError::Refused(self.pid, why.to_owned())),
            None => Err(AskError::NoAnswer(self.pid)),
        }
    }

    /// The recording behind a socket; without an answer its recorder's process id, if somebody listens.
    fn at(socket: &Path) -> Result<Self, Option<u32>> {
        let mut buffer = vec![0; LARGEST_ANSWER];
        let connection = connection(socket, Some(PATIENCE)).ok_or(None)?;
        let listener = peer(connection.as_fd()).map(|peer| peer.pid.as_raw_nonzero().get().unsigned_abs());
        let answer = asked(&connection, &Question::Status.encode(), &mut buffer).ok_or(listener)?;
        let status = Status::decode(answer).map_err(|_| listener)?;
        Ok(Self {
            socket: socket.to_owned(),
            pid: status.pid,
            command_pid: status.command_pid,
            is_flight_recorder: status.is_flight_recorder,
            command: status.command.to_owned(),
            output: status.output.into(),
        })
    }

    fn is_called(&self, word: &str) -> bool {
        let program = Path::new(self.command.split(' ').next().unwrap_or_default());
        let pids = [self.pid, self.command_pid].map(|pid| pid.to_string());
        pids.iter().any(|pid| pid == word)
            || program.as_os_str() == word
            || program.file_name() == Some(OsStr::new(word))
    }
}

/// Asks the recorder behind a socket. `None` without an answer in time.
fn ask<'a>(
    path: &Path,
    question: &[u8],
    patience: Option<Duration>,
    buffer: &'a mut [u8],
) -> Option<&'a [u8]> {
    asked(&connection(path, patience)?, question, buffer)
}

/// A connection to the recorder behind a socket, on which nothing takes longer than `patience`.
fn connection(path: &Path, patience: Option<Duration>) -> Option<OwnedFd> {
    let socket: OwnedFd =
        socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).ok()?;
    set_socket_timeout(&socket, Timeout::Send, patience).ok()?;
    set_socket_timeout(&socket, Timeout::Recv, patience).ok()?;
    connect(&socket, &SocketAddrUnix::new(path).ok()?).ok()?;
    Some(socket)
}

fn asked<'a>(connection: &OwnedFd, question: &[u8], buffer: &'a mut [u8]) -> Option<&'a [u8]> {
    retry_on_intr(|| send(connection, question, SendFlags::NOSIGNAL)).ok()?;
    let (len, _) = retry_on_intr(|| recv(connection, &mut *buffer, RecvFlags::empty())).ok()?;
    buffer.get(..len).filter(|answer| !answer.is_empty())
}

/// Where recorders of this user can have their folders, with or without the variables of a login session; root looks
/// everywhere.
fn parents() -> Vec<PathBuf> {
    let mut parents = vec![socket::parent_folder(), "/tmp".into()];
    let run = Path::new("/run/user");
    if getuid() == Uid::ROOT {
        parents.extend(fs::read_dir(run).into_iter().flatten().flatten().map(|entry| entry.path()));
    } else {
        parents.push(run.join(getuid().as_raw().to_string()));
    }
    parents
}

fn recorders_in(parent: &Path) -> Vec<PathBuf> {
    let is_ours = |path: &Path| {
        let data = fs::symlink_metadata(path);
        data.is_ok_and(|data| data.is_dir() && (getuid() == Uid::ROOT || data.uid() == getuid().as_raw()))
    };
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    entries
        .filter(|entry| socket::is_recorders(&entry.file_name()))
        .map(|entry| entry.path())
        .filter(|path| is_ours(path))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn running(pid: u32, is_flight_recorder: bool, command: &str) -> Running {
        Running {
            socket: PathBuf::new(),
            pid,
            command_pid: pid + 1,
            is_flight_recorder,
            command: command.to_owned(),
            output: "/t".into(),
        }
    }

    #[test]
    fn the_one_that_is_meant_is_found() {
        let one = running(10, true, "/usr/bin/server --port 1");
        let all = vec![one.clone(), running(20, false, "make"), running(30, false, "server")];
        let found = |all: &[Running]| Recordings { running: all.to_vec(), silent: Vec::new() };
        let flight = |all: &[Running], word| found(all).choose(word, Kind::FlightRecorder);
        for word in [None, Some("10"), Some("11"), Some("server"), Some("/usr/bin/server")] {
            assert_eq!(flight(&all, word).unwrap(), one, "{word:?}");
        }
        let error = |all: &[Running], word| flight(all, word).unwrap_err().to_string();
        assert!(error(&[], None).contains("no recording is running"));
        assert!(error(&[], Some("1")).contains("record --flight-recorder --"));
        assert!(error(&all, Some("make")).contains("20 is no flight recorder"));
        assert!(error(&all[1..], None).contains("20 is no flight recorder"));
        assert!(error(&all, Some("nobody")).contains("\n  20 (recorder of make, into /t)"));
        let two = [one, running(40, true, "server")];
        assert!(
            error(&two, None).contains("\n  10 (flight recorder of /usr/bin/server --port 1, into /t)\n  40")
        );
        assert_eq!(flight(&two, Some("40")).unwrap().pid, 40);

        let any = |all: &[Running], word| found(all).choose(word, Kind::Any);
        assert_eq!(any(&all, Some("make")).unwrap().pid, 20);
        assert_eq!(any(&all[1..2], None).unwrap().pid, 20);
        assert!(any(&all, None).unwrap_err().to_string().contains("several recordings are running"));
        assert!(any(&all, Some("server")).unwrap_err().to_string().contains("\n  30"));
        assert!(any(&[], None).unwrap_err().to_string().contains("record -- CMD"));
    }

    #[test]
    fn one_that_does_not_answer_may_be_the_one() {
        let found = || Recordings { running: vec![running(20, false, "make")], silent: vec![7, 10] };
        assert_eq!(found().choose(Some("make"), Kind::Any).unwrap().pid, 20);
        for word in [None, Some("10"), Some("server")] {
            let error = found().choose(word, Kind::Any).unwrap_err().to_string();
            assert!(
                error.contains("(process 7, 10)") && error.contains("\n  20 (recorder of make"),
                "{error}"
            );
        }
    }
}
