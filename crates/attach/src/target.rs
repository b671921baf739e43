//! A process that can be attached to.

use std::fs;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid as KernelPid, PidfdFlags, PidfdGetfdFlags, geteuid, pidfd_getfd, pidfd_open};
use tracewing_proc::{Stat, Status};
use tracewing_units::Pid;

use crate::threads::threads;
use crate::{Refusal, Unsupported};

/// `KCMP_VM` of `linux/kcmp.h`: whether two processes share their memory.
const SHARED_MEMORY: libc::c_int = 1;
/// Fifth byte of an ELF file: 64 bits.
const CLASS_64: u8 = 2;

/// A process, pinned so that its id means no other one.
#[derive(Debug)]
pub struct Target {
    pid: Pid,
    pidfd: OwnedFd,
    /// The longest time for which a thread was stopped, ns; 0: none was.
    longest_stop: AtomicU64,
    /// The recorder's process id, as the other one sees it; 0: it does not.
    recorder: u32,
}

impl Target {
    /// Looks whether a process can be attached to by this one, which is the recorder. It is not touched.
    ///
    /// # Errors
    /// Why it cannot.
    pub fn open(pid: Pid) -> Result<Self, Refusal> {
        Self::open_for(pid, Pid::from_unsigned(std::process::id()))
    }

    /// As [`Self::open`], for a recorder that is another process in this one's PID namespace: what the
    /// program makes for it is of no use once it has ended.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_for(pid: Pid, recorder: Pid) -> Result<Self, Refusal> {
        let id = (pid.0 > 0).then(|| KernelPid::from_raw(pid.0)).flatten().ok_or(Refusal::Gone(pid))?;
        let pidfd = pidfd_open(id, PidfdFlags::empty()).map_err(|_| Refusal::Gone(pid))?;
        let recorder = if sees_this_process(pid) { recorder.as_unsigned() } else { 0 };
        let target = Self { pid, pidfd, longest_stop: AtomicU64::new(0), recorder };
        target.check()?;
        Ok(target)
    }

    /// Its process id.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// The longest time for which one of its threads was stopped, from the request to stop until it was let
    /// go; even where no call came of it. `None` where none was.
    pub fn longest_stop(&self) -> Option<Duration> {
        let ns = self.longest_stop.load(Relaxed);
        (ns > 0).then(|| Duration::from_nanos(ns))
    }

    /// Takes a copy of one of its descriptors.
    ///
    /// # Errors
    /// It has none of that number, or may not be looked into any more.
    pub fn descriptor(&self, number: i32) -> Result<OwnedFd, Refusal> {
        let taken = pidfd_getfd(&self.pidfd, number, PidfdGetfdFlags::empty());
        taken.map_err(|error| self.failed("pidfd_getfd")(error.into()))
    }

    pub(crate) fn recorder_inside(&self) -> u64 {
        self.recorder.into()
    }

    pub(crate) fn longest(&self) -> &AtomicU64 {
        &self.longest_stop
    }

    pub(crate) fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    fn check(&self) -> Result<(), Refusal> {
        let pid = self.pid;
        let status = Status::of(pid).ok_or(Refusal::Gone(pid))?;
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
        if status.parent().is_some_and(|parent| shares_memory(pid, parent)) {
            return Err(Refusal::SharedMemory(pid));
        }
        self.is_alive().then_some(()).ok_or(Refusal::Gone(pid))
    }

    fn check_status(&self, status: &Status) -> Result<(), Refusal> {
        let pid = self.pid;
        if matches!(status.state(), Some(b'Z' | b'X')) {
            // It ends at this moment, or lives on in its other threads; the kernel shows no memory of it.
            let others = threads(pid).unwrap_or_default();
            let live = others.iter().filter_map(|tid| Status::of_thread(pid, *tid)).any(|of| of.has_memory());
            return Err(if live { Refusal::FirstThread(pid) } else { Refusal::Zombie(pid) });
        } else if !status.has_memory() {
            // Of a process that is ending the memory is gone first.
            let is_of_kernel = Stat::of(pid).and_then(|stat| stat.is_of_kernel()) == Some(true);
            return Err(if is_of_kernel { Refusal::Kernel(pid) } else { Refusal::Gone(pid) });
        }
        if status.has_shadow_stack() {
            return Err(Refusal::Unsupported { pid, why: Unsupported::ShadowStack });
        }
        let threads = threads(pid).ok_or(Refusal::Gone(pid))?;
        for of in threads.iter().filter_map(|tid| Status::of_thread(pid, *tid)) {
            if let Some(tracer) = of.tracer() {
                let by = Status::of(tracer.as_process()).and_then(|status| status.process());
                let by = by.unwrap_or(tracer.as_process());
                let name = fs::read(format!("/proc/{by}/comm")).unwrap_or_default();
                let name = String::from_utf8_lossy(&name).trim_end().to_owned();
                return Err(Refusal::Traced { pid, by, name });
            }
            if of.state() == Some(b'T') {
                return Err(Refusal::Stopped(pid));
            }
        }
        Ok(())
    }

    /// Why it may not be traced, or looked into.
    pub fn not_permitted(&self) -> Refusal {
        let pid = self.pid;
        let Some(status) = Status::of(pid).filter(Status::has_memory) else {
            return Refusal::Gone(pid);
        };
        let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").ok();
        let [real, effective, saved, _] = status.users().unwrap_or_default();
        forbidden(pid, [real, effective, saved], geteuid().as_raw(), scope.as_deref())
    }

    /// Makes a refusal of a system call's failure.
    pub(crate) fn failed(&self, call: &'static str) -> impl FnOnce(std::io::Error) -> Refusal {
        let pid = self.pid;
        move |source| match source.raw_os_error() {
            Some(libc::ESRCH) => Refusal::Gone(pid),
            _ if !self.is_alive() => Refusal::Gone(pid),
            _ => Refusal::System { pid, call, source },
        }
    }

    /// A pidfd becomes readable when its process ends.
    pub(crate) fn is_alive(&self) -> bool {
        let mut file = [PollFd::new(&self.pidfd, PollFlags::IN)];
        poll(&mut file, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) == Ok(0)
    }
}

/// Whether a process sees this one under the number that this one sees itself.
fn sees_this_process(pid: Pid) -> bool {
    let namespace = |of: &str| fs::read_link(format!("/proc/{of}/ns/pid")).ok();
    let own = namespace("self");
    own.is_some() && own == namespace(&pid.to_string())
}

/// Why a user may not trace a process of these users, as the setting of Yama has it where there is one.
fn forbidden(pid: Pid, users: [u32; 3], own: u32, yama: Option<&str>) -> Refusal {
    if let Some(uid) = users.into_iter().find(|uid| own != 0 && *uid != own) {
        return Refusal::OtherUser { pid, uid };
    }
    match yama.and_then(|scope| scope.trim().parse().ok()) {
        Some(scope) if scope > 0 => Refusal::Yama { pid, scope },
        // Of this user namespace only, or without the capabilities that root usually has.
        _ if own == 0 => Refusal::LimitedRoot(pid),
        _ => Refusal::NotDumpable(pid),
    }
}

/// Whether a process runs in the memory of its parent. Not where the kernel cannot say.
fn shares_memory(pid: Pid, parent: Pid) -> bool {
    // SAFETY: five numbers.
    parent.0 > 0 && unsafe { libc::syscall(libc::SYS_kcmp, pid.0, parent.0, SHARED_MEMORY, 0, 0) } == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_not_be_traced_has_its_reason() {
        let own = [1000; 3];
        let text = |users, yama| forbidden(Pid(7), users, 1000, yama).to_string();
        assert_eq!(
            text(own, Some("1\n")),
            "process 7 may be attached to by its parents only (kernel.yama.ptrace_scope is 1): attach as root"
        );
        assert!(matches!(forbidden(Pid(7), [0; 3], 0, Some("3\n")), Refusal::Yama { scope: 3, .. }));
        for yama in [None, Some("0\n"), Some("")] {
            assert!(matches!(forbidden(Pid(7), own, 1000, yama), Refusal::NotDumpable(Pid(7))), "{yama:?}");
        }
        let refusal = forbidden(Pid(1), [65534; 3], 0, Some("0\n"));
        assert!(matches!(refusal, Refusal::LimitedRoot(Pid(1))), "{refusal}");
        // Whatever Yama says, it is that of another user.
        for users in [[0; 3], [1000, 1000, 0], [0, 1000, 1000]] {
            assert!(matches!(forbidden(Pid(7), users, 1000, Some("1\n")), Refusal::OtherUser { uid: 0, .. }));
        }
    }
}
