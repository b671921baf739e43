//! A process that runs already, pinned so that its number means no other one.

use std::os::fd::OwnedFd;
use std::rc::Rc;

use rustix::io::Errno;
use rustix::process::{Pid as KernelPid, PidfdFlags, getuid, pidfd_open};
use tracewing_proc::Status;
use tracewing_units::Pid;

use crate::credentials::{is_alive, users};
use crate::program::{Program, is_of_kernel, ticks_since_boot};
use crate::refusal::Refusal;

/// A running process that is to be recorded.
#[derive(Debug, Clone)]
pub(crate) struct Process {
    pub(crate) pid: Pid,
    /// The file name of its executable, or where that is not known the name of its first thread.
    pub(crate) name: String,
    /// Real user id.
    pub(crate) uid: u32,
    pidfd: Rc<OwnedFd>,
    /// When it was opened, in the kernel's ticks after boot.
    since: u64,
}

impl Process {
    /// Pins a process that is to be recorded. What `/proc` says of the number is of the pinned process, since
    /// that lives afterwards.
    ///
    /// # Errors
    /// Why it is not recorded.
    pub(crate) fn open(pid: Pid) -> Result<Self, Refusal> {
        if pid.as_unsigned() == std::process::id() {
            return Err(Refusal::Itself);
        }
        let since = ticks_since_boot();
        let Some(raw) = KernelPid::from_raw(pid.0).filter(|_| pid.0 > 0) else {
            return Err(Refusal::None { pid });
        };
        let pidfd = match pidfd_open(raw, PidfdFlags::empty()) {
            Ok(pidfd) => pidfd,
            // A thread that is not the first of its process.
            Err(Errno::INVAL | Errno::NOENT) => return Err(not_first(pid)),
            Err(Errno::SRCH) => return Err(Refusal::None { pid }),
            Err(errno) => return Err(Refusal::System { pid, call: "pidfd_open", source: errno.into() }),
        };
        let name = Program::of(pid).name;
        let (is_of_kernel, users) = (is_of_kernel(pid), users(pid));
        if !is_alive(&pidfd) {
            return Err(Refusal::Ended { pid });
        }
        if is_of_kernel {
            return Err(Refusal::OfKernel { pid, name });
        }
        // Not to be seen, as with the mount option hidepid.
        let Some(users) = users else { return Err(Refusal::None { pid }) };
        let own = getuid().as_raw();
        if own != 0 && users != [own; 3] {
            let uid = users.into_iter().find(|user| *user != own).unwrap_or_default();
            return Err(Refusal::OtherUser { pid, name, uid });
        }
        Ok(Self { pid, name, uid: users[0], pidfd: Rc::new(pidfd), since })
    }

    /// Pins a process that a recorded one has started, whatever user it is now; `None` where the number is
    /// that of a thread, or the process has ended.
    pub(crate) fn open_child(pid: Pid) -> Option<Self> {
        let since = ticks_since_boot();
        let raw = KernelPid::from_raw(pid.0)?;
        let pidfd = pidfd_open(raw, PidfdFlags::empty()).ok().filter(is_alive)?;
        let (name, uid) = (Program::of(pid).name, users(pid).unwrap_or_default()[0]);
        Some(Self { pid, name, uid, pidfd: Rc::new(pidfd), since })
    }

    pub(crate) fn pidfd(&self) -> &OwnedFd {
        &self.pidfd
    }

    /// What it starts from then on is recorded, in the kernel's ticks after boot.
    pub(crate) fn followed_since(&self) -> u64 {
        self.since
    }
}

/// When a process began, in the kernel's ticks after boot; 0 where there is none.
pub(crate) fn began(pid: Pid) -> u64 {
    Program::of(pid).began()
}

/// Why a number that no process has is refused: it may be that of a thread.
fn not_first(tid: Pid) -> Refusal {
    match process_of(tid).filter(|pid| *pid != tid) {
        Some(pid) => Refusal::Thread { tid, pid },
        None => Refusal::None { pid: tid },
    }
}

/// Of which process a thread is.
fn process_of(tid: Pid) -> Option<Pid> {
    Status::of(tid)?.process()
}
