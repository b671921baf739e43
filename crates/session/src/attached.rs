//! Attaches to a running process: has each copy of tracewing in it (in the executable, plug-ins, the C
//! library, the pre-loaded library) open a door (`tracewing_abi::message::door`). Through it the copy then
//! joins like a program that the recorder has started.
//!
//! Answers of the process are not trusted. Whether a descriptor can be a door is checked before it is copied,
//! since closing a copy of a file can take as long as its file system likes. Other descriptors are not read.

mod calls;
mod reading;
mod wanted;

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant};

use rustix::net::sockopt::{set_socket_passcred, socket_acceptconn, socket_domain, socket_type};
use rustix::net::{AddressFamily, SendFlags, SocketType, send};
use tracewing_abi::message::door::{Door, Enter, NO_THREAD};
use tracewing_attach::{Place, Refusal, Target};
use tracewing_programs::Entry;
use tracewing_programs::image::{Memory, Process};
use tracewing_units::Pid;

use crate::credentials::peer;
pub(crate) use calls::names as names_of_calls;
pub(crate) use reading::{Found, Here, Reader, Source, Unread, find};
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

/// Why a process was not attached to.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotAttached {
    /// It cannot be, or not at this moment.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Whether it has copies of tracewing, and where, is unknown.
    #[error("what it contains could not be read: {0}")]
    Unread(#[from] Unread),
    /// The process that attaches for the recorder has ended.
    #[error("the recorder's process tracewing-ptrace, which attaches to programs, has ended; record again")]
    NoHelper,
}

/// The result of an attempt to attach to a process.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Why the process was not attached to. It runs as before; copies that were entered before that give up.
    pub(crate) result: Result<Answers, NotAttached>,
    /// The longest time for which one of its threads was stopped; `None` where none was.
    pub(crate) longest_stop: Option<Duration>,
    /// The copies that were to be entered.
    pub(crate) tried: Vec<Loaded>,
}

/// The recorder for which a process is attached to, and what parses the process's contents.
#[derive(Clone, Copy)]
pub(crate) struct By<'a> {
    /// The recorder's process id.
    pub(crate) recorder: Pid,
    pub(crate) recording: [u8; 16],
    pub(crate) reader: &'a dyn Reader,
}

/// Has copies of tracewing in a process open their doors to a recording. No door opens if the process has
/// no such copy, or if all of them decline because the program has forbidden threads of the agent. Waits no
/// longer than `patience` for a thread that can be borrowed.
pub(crate) fn attach(pid: Pid, wanted: &Wanted, by: By<'_>, patience: Duration) -> Outcome {
    let mut tried = Vec::new();
    // Most looks find nothing new: the process is not looked at any closer then.
    if matches!(wanted, Wanted::New { .. }) {
        let found = ready(pid, wanted, by.reader).map(|(found, _)| found);
        match found {
            Ok(Some(found)) if !found.is_empty() => {}
            Ok(_) | Err(Unread::Nothing) => {
                return Outcome { result: Ok(Answers::default()), longest_stop: None, tried };
            }
            Err(unread) => return Outcome { result: Err(unread.into()), longest_stop: None, tried },
        }
    }
    match Target::open_for(pid, by.recorder) {
        Ok(target) => {
            let result = enter(&target, wanted, by, &mut tried, patience);
            Outcome { result, longest_stop: target.longest_stop(), tried }
        }
        Err(refusal) => refused(pid, wanted, by.reader, refusal),
    }
}

/// A process without a copy of tracewing has no events of its own that a refusal could lose.
fn refused(pid: Pid, wanted: &Wanted, reader: &dyn Reader, refusal: Refusal) -> Outcome {
    let (tried, is_plain) = match ready(pid, wanted, reader) {
        Ok((Some(ready), has_copies)) => (ready.iter().map(Loaded::of).collect(), !has_copies),
        Ok((None, has_copies)) => (Vec::new(), !has_copies),
        Err(_) => (Vec::new(), false),
    };
    let result = if is_plain { Ok(Answers::default()) } else { Err(refusal.into()) };
    Outcome { result, longest_stop: None, tried }
}

/// The copies that are to be entered, `None` where the process's memory cannot be read; and whether there are
/// copies at all, by its executable where its memory cannot be read.
fn ready(pid: Pid, wanted: &Wanted, reader: &dyn Reader) -> Result<(Option<Vec<Entry>>, bool), Unread> {
    // What has started with the program is looked for at first only.
    let settled = (*wanted == Wanted::Present).then(|| Now::of(pid).settled());
    let source = Source::open(pid, settled).ok_or(Unread::Nothing)?;
    let is_memory = matches!(source, Source::Memory { .. });
    let found = reader.find(pid, source)?;
    let has_copies = !found.is_empty();
    if !is_memory {
        return Ok((None, has_copies));
    }
    // What is loaded while they are read is younger than this.
    let now = Now::of(pid);
    let found = found.into_iter().filter(|found| found.has_started || wanted.has(&found.entry, now));
    Ok((Some(found.map(|found| found.entry).collect()), has_copies))
}

fn enter(
    target: &Target,
    wanted: &Wanted,
    By { recording, reader, .. }: By<'_>,
    tried: &mut Vec<Loaded>,
    patience: Duration,
) -> Result<Answers, NotAttached> {
    let pid = target.pid();
    let ready = match ready(pid, wanted, reader) {
        Ok((Some(ready), _)) => ready,
        // Yama lets a user open the program of a process, and not its memory.
        Ok((None, false)) => return Ok(Answers::default()),
        Ok((None, true)) | Err(Unread::Nothing) => return Err(target.not_permitted().into()),
        Err(unread) => return Err(unread.into()),
    };
    let now = Now::of(pid);
    let process = Process::open(pid).map_err(|_| target.not_permitted())?;
    let Answers { mut entered, mut declined } = Answers::default();
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
