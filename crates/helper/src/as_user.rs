//! Processes that do one thing as another user, without capabilities: so what a program has written is read
//! with the rights of this program's user, and with no others.
//!
//! A helper starts them, which can become any user and end processes of any user, and reads nothing but its
//! channel. Each process gets the bytes and descriptors of one request, and a channel of its own for its
//! reply: it sees no other request, and answers no other.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, socketpair};
use rustix::process::{
    DumpableBehavior, Gid, Resource, Rlimit, Uid, getgid, getgroups, getrlimit, getuid,
    set_dumpable_behavior, setrlimit,
};
use rustix::thread::{CapabilitySet, set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use tracewing_units::Pid;

use crate::fields::Fields;
use crate::helper::Helper;
use crate::message::{Received, Reply, Request, borrowed, receive, send};
use crate::process::{Child, end_with, is_readable, settle};
use crate::rights::keep_only;
use crate::server::Server;

/// How long the start of a process may take.
const STARTING: Duration = Duration::from_secs(2);
/// Maximum number of processes at a time.
const MOST: usize = 128;
/// How much later than its reader a process is killed.
const GRACE: Duration = Duration::from_millis(100);

/// Numbers of a process's packet: with its reply, or with the error that has kept it from its work.
const DONE: u64 = 0;
const NOT_BEGUN: u64 = 1;

/// A user and a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct User {
    /// User id.
    pub uid: u32,
    /// Group id; there are no supplementary groups.
    pub gid: u32,
}

/// What each process may use.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Time until it is killed.
    pub time: Duration,
    /// Bytes of memory, in addition to those that it begins with.
    pub memory: u64,
}

/// What a process does: it gives the bytes of a reply for the bytes and descriptors of a request.
type Work<'a> = dyn Fn(&[u8], Vec<OwnedFd>) -> Vec<u8> + 'a;

/// Why there is no reply.
#[derive(Debug)]
pub enum NoReply {
    /// The process was not started.
    Start(io::Error),
    /// It has ended without a valid reply.
    Failed,
    /// It was killed because it took too long.
    Late,
}

/// Starts processes of other users. These end with the process that owns this.
#[derive(Debug)]
pub struct AsUsers {
    starter: Helper,
    limits: Limits,
}

impl AsUsers {
    /// Starts the helper that starts them, which has the first of the two names; processes have the second
    /// one. `work` gives the bytes of a reply for the bytes and descriptors of a request.
    ///
    /// The conditions of [`Helper::start`] apply.
    ///
    /// # Errors
    /// As [`Helper::start`].
    pub fn start(
        names: [&CStr; 2],
        limits: Limits,
        work: impl Fn(&[u8], Vec<OwnedFd>) -> Vec<u8>,
    ) -> io::Result<Self> {
        let rights = CapabilitySet::SETUID | CapabilitySet::SETGID | CapabilitySet::KILL;
        let starter = Helper::start(names[0], rights, |server| serve(&server, names[1], limits, &work))?;
        Ok(Self { starter, limits })
    }

    /// Process id of the helper that starts them.
    pub fn pid(&self) -> Pid {
        self.starter.pid()
    }

    /// Ends all of them, where this cannot be dropped yet.
    pub fn end(&self) {
        self.starter.end();
    }

    /// Has a process do its work as a user, and gives its reply, which may be anything.
    ///
    /// # Errors
    /// There is none.
    pub fn ask(&self, user: User, bytes: &[u8], files: &[BorrowedFd<'_>]) -> Result<Vec<u8>, NoReply> {
        let begin = Instant::now();
        let here = self.begin(user, bytes, files).map_err(NoReply::Start)?;
        if !is_readable(&here, self.limits.time) {
            return Err(NoReply::Late);
        }
        match receive(here.as_fd(), RecvFlags::DONTWAIT) {
            Received::Packet(Request { number: DONE, bytes, files }) if files.is_empty() => Ok(bytes),
            Received::Packet(Request { number: NOT_BEGUN, bytes, .. }) => {
                let error = Fields::of(&bytes).i32().unwrap_or(libc::EIO);
                Err(NoReply::Start(io::Error::from_raw_os_error(error)))
            }
            // On a busy machine, the starter may have killed it before this thread noticed that it is late.
            _ if begin.elapsed() >= self.limits.time => Err(NoReply::Late),
            _ => Err(NoReply::Failed),
        }
    }

    /// Starts a process, and gives the end of its channel.
    fn begin(&self, user: User, bytes: &[u8], files: &[BorrowedFd<'_>]) -> io::Result<OwnedFd> {
        let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
        let (here, there) = socketpair(family, kind, SocketFlags::CLOEXEC, None)?;
        let request = [&user.uid.to_ne_bytes(), &user.gid.to_ne_bytes(), bytes].concat();
        let files: Vec<_> = [there.as_fd()].into_iter().chain(files.iter().copied()).collect();
        let number = self.starter.begin(&request, &files)?;
        let Reply { bytes, .. } = self.starter.wait(number, STARTING)?;
        match Fields::of(&bytes).i32() {
            Some(0) => Ok(here),
            error => Err(io::Error::from_raw_os_error(error.unwrap_or(libc::EIO))),
        }
    }
}

/// A process at work.
struct AtWork {
    child: Child,
    until: Instant,
}

/// Starts a process for each request, kills those that are late, and reaps those that have ended.
fn serve(server: &Server, name: &CStr, limits: Limits, work: &Work<'_>) {
    let replier = server.replier();
    let mut all: Vec<AtWork> = Vec::new();
    loop {
        let is_asked = wait(server, &all);
        let now = Instant::now();
        all.retain_mut(|AtWork { child, until }| {
            // It may take a moment until it has ended; it must not keep others waiting.
            if now >= *until {
                child.kill();
                *until = now + GRACE;
            }
            !child.try_reap()
        });
        if !is_asked {
            continue;
        }
        let Some(request) = server.next() else { break };
        let number = request.number;
        let started = if all.len() < MOST {
            start(name, limits, request, work)
        } else {
            Err(io::Error::from_raw_os_error(libc::EAGAIN))
        };
        let error = match started {
            Ok(child) => {
                all.push(AtWork { child, until: Instant::now() + limits.time + GRACE });
                0
            }
            Err(error) => error.raw_os_error().unwrap_or(libc::EIO),
        };
        if replier.reply(number, &Reply::new(error.to_ne_bytes())).is_err() {
            break;
        }
    }
    all.iter().for_each(|one| one.child.kill());
    all.iter_mut().for_each(|one| one.child.end(Duration::ZERO));
}

/// Waits until there is a request, a process has ended, or one is late. Returns whether there is a request,
/// or the channel has ended.
fn wait(server: &Server, all: &[AtWork]) -> bool {
    let mut files = vec![PollFd::from_borrowed_fd(server.as_fd(), PollFlags::IN)];
    files.extend(all.iter().map(|one| PollFd::from_borrowed_fd(one.child.pidfd(), PollFlags::IN)));
    let rest = all.iter().map(|one| one.until.saturating_duration_since(Instant::now())).min();
    let rest =
        rest.map(|rest| Timespec { tv_sec: rest.as_secs() as i64, tv_nsec: rest.subsec_nanos().into() });
    let _ = poll(&mut files, rest.as_ref());
    !files[0].revents().is_empty()
}

/// Starts a process for a request, of which the first descriptor is for its reply.
fn start(
    name: &CStr,
    limits: Limits,
    Request { bytes, files, .. }: Request,
    work: &Work<'_>,
) -> io::Result<Child> {
    let mut fields = Fields::of(&bytes);
    let (uid, gid) = fields.u32().zip(fields.u32()).ok_or(io::ErrorKind::InvalidData)?;
    let user = User { uid, gid };
    let parent = Pid::from_unsigned(std::process::id());
    Child::fork(|| {
        let _ = rustix::thread::set_name(name);
        // Where a panic is, is of no use without standard error, and takes long to find out.
        std::panic::set_hook(Box::new(|_| {}));
        let Ok(files) = settle(&borrowed(&files), parent) else { return };
        let mut files = files.into_iter();
        let Some(channel) = files.next() else { return };
        let (number, reply) = match give_up(user, limits, parent) {
            Ok(()) => (DONE, work(fields.rest(), files.collect())),
            Err(error) => (NOT_BEGUN, error.raw_os_error().unwrap_or(libc::EIO).to_ne_bytes().to_vec()),
        };
        let _ = send(channel.as_fd(), number, &reply, &[], SendFlags::empty());
    })
}

/// In the new process: leaves it the rights of a user.
fn give_up(user: User, limits: Limits, parent: Pid) -> io::Result<()> {
    limit(limits)?;
    become_user(user)?;
    // Else another process of the user could read it, and get its descriptors.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    end_with(parent)
}

fn become_user(User { uid, gid }: User) -> io::Result<()> {
    let (uid, gid) = (known(uid).map(Uid::from_raw), known(gid).map(Gid::from_raw));
    let (uid, gid) = uid.zip(gid).ok_or(io::ErrorKind::InvalidInput)?;
    let is_own = (uid, gid) == (getuid(), getgid());
    // A user namespace may forbid it.
    if let Err(error) = set_thread_groups(&[])
        && !is_own
        && getgroups().is_ok_and(|groups| !groups.is_empty())
    {
        return Err(error.into());
    }
    set_thread_res_gid(gid, gid, gid)?;
    set_thread_res_uid(uid, uid, uid)?;
    keep_only(CapabilitySet::empty())
}

/// The number of a user or group, unless it means that nothing changes.
fn known(id: u32) -> Option<u32> {
    (id != u32::MAX).then_some(id)
}

/// Sets limits, which the process cannot raise any more.
fn limit(Limits { time, memory }: Limits) -> io::Result<()> {
    // Pages of address space, …, of memory that can be written.
    let statm = std::fs::read_to_string("/proc/self/statm")?;
    let pages: Vec<u64> = statm.split_whitespace().map_while(|pages| pages.parse().ok()).collect();
    let [all, _, _, _, _, data, ..] = pages[..] else { return Err(io::ErrorKind::InvalidData.into()) };
    let with_more =
        |pages: u64| pages.saturating_mul(rustix::param::page_size() as u64).saturating_add(memory);
    let of_each = [
        (Resource::As, with_more(all)),
        // Address space may be reserved already.
        (Resource::Data, with_more(data)),
        (Resource::Cpu, time.as_secs() + 1),
        (Resource::Core, 0),
        (Resource::Fsize, 0),
        (Resource::Nproc, 0),
    ];
    for (resource, most) in of_each {
        let most = getrlimit(resource).maximum.map_or(most, |own| own.min(most));
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
    }
    Ok(())
}
