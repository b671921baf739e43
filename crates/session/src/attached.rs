//! Attaches to a running process: has each copy of tracewing in it (in the executable, plug-ins, the C
//! library, the pre-loaded library) open a door (`tracewing_abi::message::door`). Through it the copy then
//! joins like a program that the recorder has started.
//!
//! Answers of the process are not trusted. Whether a descriptor can be a door is checked before it is copied,
//! since closing a copy of a file can take as long as its file system likes. Other descriptors are not read.

mod calls;
mod wanted;

use std::collections::BTreeSet;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant};

use rustix::net::sockopt::{set_socket_passcred, socket_acceptconn, socket_domain, socket_type};
use rustix::net::{AddressFamily, SendFlags, SocketType, send};
use tracewing_abi::message::door::{Door, Enter, NO_THREAD};
use tracewing_attach::{Place, Refusal, Target};
use tracewing_programs::image::{Files, Memory, Process, started_with};
use tracewing_programs::{Entry, entries};
use tracewing_units::Pid;

use crate::credentials::peer;
use wanted::Now;
pub(crate) use wanted::{Loaded, Wanted};

/// How long a program's agent may take to make a door, and the time between two looks for it.
const OPENING: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_micros(200);

/// A copy of tracewing that has been entered.
#[derive(Debug)]
pub(crate) struct Entered {
    /// The recorder's end of its door.
    pub(crate) door: OwnedFd,
    /// Number of seccomp filters of the thread that opened it, and of its agent's threads: they allow all
    /// that the agent does.
    pub(crate) filters: u32,
    pub(crate) entry: Entry,
    /// How long its object had been loaded, if known.
    pub(crate) age: Option<Duration>,
}

/// What the copies of tracewing in a process have answered.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    pub(crate) entered: Vec<Entered>,
    /// Why one of them has opened no connection.
    pub(crate) declined: Option<Declined>,
}

/// Why a copy of tracewing has opened no connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Declined {
    /// The program has forbidden threads of the agent.
    #[error("it has asked tracewing to start no more threads (tracewing::before_sandbox)")]
    Alone,
    /// The system refuses a thread.
    #[error("it can start no thread (its limit of processes, or of memory)")]
    NoThread,
    /// The system refuses a descriptor.
    #[error("it has opened no connection ({0})")]
    System(std::io::Error),
    /// What it has given is no door.
    #[error("it has opened no connection")]
    NoDoor,
}

impl Declined {
    fn of(error: i32) -> Self {
        match error {
            libc::ESHUTDOWN => Self::Alone,
            NO_THREAD => Self::NoThread,
            error if error > 0 => Self::System(std::io::Error::from_raw_os_error(error)),
            _ => Self::NoDoor,
        }
    }
}

/// The result of an attempt to attach to a process.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Why the process was not attached to. It runs as before; copies that were entered before that give up.
    pub(crate) result: Result<Answers, Refusal>,
    /// The longest time for which one of its threads was stopped; `None` where none was.
    pub(crate) longest_stop: Option<Duration>,
    /// The copies that were to be entered.
    pub(crate) tried: Vec<Loaded>,
}

/// Has copies of tracewing in a process open their doors to this recording. No door opens if the process has
/// no such copy, or if all of them decline because the program has forbidden threads of the agent. Waits no
/// longer than `patience` for a thread that can be borrowed.
pub(crate) fn attach(pid: Pid, wanted: &Wanted, recording: [u8; 16], patience: Duration) -> Outcome {
    let mut tried = Vec::new();
    // Most looks find nothing new: the process is not looked at any closer then.
    if matches!(wanted, Wanted::New { .. }) && found(pid, wanted).is_none_or(|found| found.is_empty()) {
        return Outcome { result: Ok(Answers::default()), longest_stop: None, tried };
    }
    match Target::open(pid) {
        Ok(target) => {
            let result = enter(&target, pid, wanted, &mut tried, recording, patience);
            Outcome { result, longest_stop: target.longest_stop(), tried }
        }
        Err(refusal) => {
            // A process without a copy of tracewing has no events of its own that a refusal could lose.
            let result = if is_plain(pid) { Ok(Answers::default()) } else { Err(refusal) };
            let found = found(pid, wanted).unwrap_or_default();
            Outcome { result, longest_stop: None, tried: found.iter().map(Loaded::of).collect() }
        }
    }
}

/// The copies in a process that are to be entered; `None` where its memory cannot be read.
fn found(pid: Pid, wanted: &Wanted) -> Option<Vec<Entry>> {
    Some(ready(pid, &Process::open(pid).ok()?, wanted).0)
}

/// The copies that are to be entered, and when that was so.
fn ready(pid: Pid, process: &Process, wanted: &Wanted) -> (Vec<Entry>, Now) {
    let entries = entries(process);
    // What is loaded while they are read is younger than this.
    let now = Now::of(pid);
    let may_have_started = *wanted == Wanted::Present && entries.iter().any(|entry| !wanted.has(entry, now));
    let started = if may_have_started { started_with(pid, process) } else { BTreeSet::new() };
    let is_ready = |entry: &Entry| wanted.has(entry, now) || started.contains(&entry.number);
    (entries.into_iter().filter(is_ready).collect(), now)
}

/// Whether a process has no copy of tracewing. Where its memory cannot be read, as its executable has it.
fn is_plain(pid: Pid) -> bool {
    match Process::open(pid) {
        Ok(process) => entries(&process).is_empty(),
        Err(_) => Files::open(&[format!("/proc/{pid}/exe")]).is_ok_and(|files| entries(&files).is_empty()),
    }
}

fn enter(
    target: &Target,
    pid: Pid,
    wanted: &Wanted,
    tried: &mut Vec<Loaded>,
    recording: [u8; 16],
    patience: Duration,
) -> Result<Answers, Refusal> {
    // Yama lets a user open the program of a process, and not its memory.
    let process = match Process::open(pid) {
        Ok(process) => process,
        Err(_) if is_plain(pid) => return Ok(Answers::default()),
        Err(_) => return Err(target.not_permitted()),
    };
    let Answers { mut entered, mut declined } = Answers::default();
    let (ready, now) = ready(pid, &process, wanted);
    for entry in ready {
        tried.push(Loaded::of(&entry));
        let place = Place { entry: entry.address, word: entry.word };
        let called = target.call(place, &calls::ALL, patience)?;
        let number = match number(&process, called.result) {
            Ok(number) => number,
            Err(why) => {
                declined = Some(why);
                continue;
            }
        };
        let Some(door) = door(target, pid, number)? else {
            declined = Some(Declined::NoDoor);
            continue;
        };
        let enter = Enter { recording }.encode();
        let is_taken = send(&door, &enter, SendFlags::DONTWAIT | SendFlags::NOSIGNAL).is_ok();
        if is_taken {
            let filters = u32::try_from(called.filters).unwrap_or(u32::MAX);
            let age = now.age(&entry);
            entered.push(Entered { door, filters, entry, age });
        }
    }
    Ok(Answers { entered, declined })
}

/// For tests: the numbers of the system calls that a program makes to be attached to, and while it is
/// recorded.
pub fn calls_of_programs() -> impl Iterator<Item = i64> {
    calls::ALL.iter().flat_map(|call| [Some(call), call.without]).flatten().map(|call| call.number)
}

/// The number of the recorder's end of a door, by what the entry's function has returned: the address of a
/// word that says so in a moment, or a negative error number.
fn number(process: &Process, result: i64) -> Result<i32, Declined> {
    let Ok(address) = u64::try_from(result) else {
        return Err(Declined::of(i32::try_from(result.saturating_neg()).unwrap_or(0)));
    };
    let begin = Instant::now();
    while begin.elapsed() < OPENING {
        let word = process.word(address).ok_or(Declined::NoDoor)?;
        match Door::of(word.cast_signed()).map_err(|_| Declined::NoDoor)? {
            Door::Opening => std::thread::sleep(LOOK),
            Door::Open(number) => return Ok(number),
            Door::Failed(error) => return Err(Declined::of(error)),
            Door::Closed => return Err(Declined::NoDoor),
        }
    }
    Err(Declined::NoDoor)
}

/// The door with this number, if it is one that the process has made.
fn door(target: &Target, pid: Pid, number: i32) -> Result<Option<OwnedFd>, Refusal> {
    let path = std::fs::read_link(format!("/proc/{pid}/fd/{number}")).unwrap_or_default();
    if !path.as_os_str().as_bytes().starts_with(b"socket:") {
        return Ok(None);
    }
    let door = target.descriptor(number)?;
    let is_its_own = peer(door.as_fd()).is_some_and(|peer| peer.pid == pid);
    // With it the kernel names the process that has sent a message.
    let is_door = is_connection(door.as_fd()) && is_its_own && set_socket_passcred(&door, true).is_ok();
    Ok(is_door.then_some(door))
}

/// Whether a descriptor is a connection of packets within this machine.
pub(crate) fn is_connection(file: BorrowedFd<'_>) -> bool {
    socket_domain(file) == Ok(AddressFamily::UNIX)
        && socket_type(file) == Ok(SocketType::SEQPACKET)
        && socket_acceptconn(file) == Ok(false)
}

/// Closes a descriptor that is not a door, which can take as long as its maker likes.
pub(crate) fn dispose(file: OwnedFd) {
    let number = file.as_raw_fd();
    let closing = std::thread::Builder::new().name(format!("close {number}")).spawn(move || drop(file));
    drop(closing); // without a thread it was closed here
}
