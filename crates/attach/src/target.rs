//! A process that can be attached to.

use std::fs;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, geteuid, pidfd_getfd, pidfd_open};

use crate::Refusal;
use crate::status::Status;
use crate::threads::threads;

/// `KCMP_VM` of `linux/kcmp.h`: whether two processes share their memory.
const SHARED_MEMORY: libc::c_int = 1;
/// Fifth byte of an ELF file: 64 bits.
const CLASS_64: u8 = 2;

/// A process, pinned so that its id means no other one.
#[derive(Debug)]
pub struct Target {
    pid: i32,
    pidfd: OwnedFd,
}

impl Target {
    /// Looks whether a process can be attached to. It is not touched.
    ///
    /// # Errors
    /// Why it cannot.
    pub fn open(pid: i32) -> Result<Self, Refusal> {
        let id = (pid > 0).then(|| Pid::from_raw(pid)).flatten().ok_or(Refusal::Gone(pid))?;
        let pidfd = pidfd_open(id, PidfdFlags::empty()).map_err(|_| Refusal::Gone(pid))?;
        let target = Self { pid, pidfd };
        target.check()?;
        Ok(target)
    }

    /// Its process id.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Takes a copy of one of its descriptors.
    ///
    /// # Errors
    /// It has none of that number, or may not be looked into any more.
    pub fn descriptor(&self, number: i32) -> Result<OwnedFd, Refusal> {
        let taken = pidfd_getfd(&self.pidfd, number, PidfdGetfdFlags::empty());
        taken.map_err(|error| self.failed("pidfd_getfd")(error.into()))
    }

    pub(crate) fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    fn check(&self) -> Result<(), Refusal> {
        let pid = self.pid;
        let status = Status::read(pid).ok_or(Refusal::Gone(pid))?;
        self.check_status(&status)?;
        // Of another user, or kept from being looked into.
        let mut head = [0; 5];
        let mut program =
            fs::File::open(format!("/proc/{pid}/exe")).map_err(|error| match error.raw_os_error() {
                Some(libc::EACCES | libc::EPERM) => self.not_permitted(),
                _ => Refusal::Gone(pid),
            })?;
        let is_64 = std::io::Read::read_exact(&mut program, &mut head).is_ok() && head[4] == CLASS_64;
        is_64.then_some(()).ok_or(Refusal::Bits(pid))?;
        if shares_memory(pid, status.parent) {
            return Err(Refusal::SharedMemory(pid));
        }
        self.is_alive().then_some(()).ok_or(Refusal::Gone(pid))
    }

    fn check_status(&self, status: &Status) -> Result<(), Refusal> {
        let pid = self.pid;
        if matches!(status.state, b'Z' | b'X') {
            // A process whose first thread has ended lives on in the others.
            let others = threads(pid).unwrap_or_default();
            let live = others.iter().filter_map(|tid| Status::of_thread(pid, *tid)).any(|of| of.has_memory);
            live.then_some(()).ok_or(Refusal::Zombie(pid))?;
        } else if !status.has_memory {
            return Err(Refusal::Kernel(pid));
        }
        if status.has_shadow_stack {
            return Err(Refusal::Unsupported { pid, why: "it has a shadow stack" });
        }
        let threads = threads(pid).ok_or(Refusal::Gone(pid))?;
        for of in threads.iter().filter_map(|tid| Status::of_thread(pid, *tid)) {
            if of.tracer != 0 {
                let by = Status::read(of.tracer).map_or(of.tracer, |tracer| tracer.process);
                let name = fs::read(format!("/proc/{by}/comm")).unwrap_or_default();
                let name = String::from_utf8_lossy(&name).trim_end().to_owned();
                return Err(Refusal::Traced { pid, by, name });
            }
            if of.state == b'T' {
                return Err(Refusal::Stopped(pid));
            }
        }
        Ok(())
    }

    /// Why it may not be traced.
    pub(crate) fn not_permitted(&self) -> Refusal {
        let pid = self.pid;
        let Some(status) = Status::read(pid) else { return Refusal::Gone(pid) };
        let user = geteuid();
        if let Some(uid) = status.users.into_iter().find(|uid| !user.is_root() && *uid != user.as_raw()) {
            return Refusal::OtherUser { pid, uid };
        }
        let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").ok();
        match scope.and_then(|scope| scope.trim().parse().ok()) {
            Some(scope) if scope > 0 => Refusal::Yama { pid, scope },
            _ => Refusal::NotDumpable(pid),
        }
    }

    /// Makes a refusal of a system call's failure.
    pub(crate) fn failed(&self, call: &'static str) -> impl FnOnce(std::io::Error) -> Refusal {
        let (pid, is_alive) = (self.pid, self.is_alive());
        move |source| match source.raw_os_error() {
            Some(libc::ESRCH) => Refusal::Gone(pid),
            _ if !is_alive => Refusal::Gone(pid),
            _ => Refusal::System { pid, call, source },
        }
    }

    /// A pidfd becomes readable when its process ends.
    fn is_alive(&self) -> bool {
        let mut file = [PollFd::new(&self.pidfd, PollFlags::IN)];
        poll(&mut file, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) == Ok(0)
    }
}

/// Whether a process runs in the memory of its parent. Not where the kernel cannot say.
fn shares_memory(pid: i32, parent: i32) -> bool {
    // SAFETY: five numbers.
    parent > 0 && unsafe { libc::syscall(libc::SYS_kcmp, pid, parent, SHARED_MEMORY, 0, 0) } == 0
}
