//! The recorded command: found as a shell finds it, forked, and held before its `exec` until the kernel's
//! filter contains its process id, so that none of its events is missed.

use std::ffi::{CString, OsStr, OsString};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::{env, io, ptr};

use rustix::fs::{Access, access};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    Pid as KernelPid, PidfdFlags, Rlimit, Signal, WaitId, WaitIdOptions, WaitIdStatus, kill_process,
    pidfd_open, waitid,
};
use tracewing_units::Pid;

use crate::Error;

/// Where the shell looks without `PATH`.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// A command that was found.
pub(crate) struct Command {
    path: CString,
    arguments: Vec<CString>,
}

/// The recorded command's process, from before its `exec`. The recording ends when it ends.
pub(crate) struct Child {
    pid: KernelPid,
    pidfd: OwnedFd,
    /// Held while the child waits; a byte lets it go.
    gate: Option<OwnedFd>,
    /// Where the system's answer to `exec` comes from.
    failure: OwnedFd,
}

/// What the child gets back of what the recorder changed for itself.
pub(crate) struct Inheritance {
    pub mask: libc::sigset_t,
    pub file_size_signal: libc::sighandler_t,
    pub open_files: Rlimit,
}

impl Command {
    /// Looks a command up.
    ///
    /// # Errors
    /// It does not exist or is not executable; [`Error::exit_status`] says which.
    pub(crate) fn find(command: &[OsString]) -> Result<Self, Error> {
        let name = command.first().map_or(OsStr::new(""), OsString::as_os_str);
        let failed = |source: io::Error| Error::Command { command: name.to_owned(), source };
        let path = look_up(name).map_err(|errno| failed(errno.into()))?;
        let c_string = |text: &OsStr| CString::new(text.as_bytes()).map_err(|_| failed(Errno::INVAL.into()));
        let arguments = command.iter().map(|argument| c_string(argument)).collect::<Result<_, _>>()?;
        Ok(Self { path: c_string(path.as_os_str())?, arguments })
    }

    /// The path of the executable.
    pub(crate) fn path(&self) -> &Path {
        Path::new(OsStr::from_bytes(self.path.to_bytes()))
    }

    /// Forks. The child waits before `exec` until [`Child::release`].
    ///
    /// # Errors
    /// The system is out of processes or descriptors.
    pub(crate) fn fork(
        &self,
        variables: &[(OsString, OsString)],
        inheritance: &Inheritance,
    ) -> Result<Child, Error> {
        let pipe = || pipe_with(PipeFlags::CLOEXEC).map_err(Error::system("pipe"));
        let ((gate_read, gate_write), (failure_read, failure_write)) = (pipe()?, pipe()?);
        let environment = environment(variables);
        let pointers = |strings: &[CString]| -> Vec<*const libc::c_char> {
            strings.iter().map(|string| string.as_ptr()).chain([ptr::null()]).collect()
        };
        let (arguments, variables) = (pointers(&self.arguments), pointers(&environment));
        let limit = libc::rlimit {
            rlim_cur: inheritance.open_files.current.unwrap_or(libc::RLIM_INFINITY),
            rlim_max: inheritance.open_files.maximum.unwrap_or(libc::RLIM_INFINITY),
        };
        let (gate, failure) = (gate_read.as_raw_fd(), failure_write.as_raw_fd());
        let other_end = gate_write.as_raw_fd();
        // A handler would not survive `exec` in any case.
        let ignores_file_size = inheritance.file_size_signal == libc::SIG_IGN;
        let file_size = if ignores_file_size { libc::SIG_IGN } else { libc::SIG_DFL };
        // SAFETY: the child calls only async-signal-safe functions, on memory prepared before the fork.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            // SAFETY: as above; every pointer outlives the call that it is passed to, and the arrays end with
            // null.
            unsafe {
                libc::close(other_end);
                let mut byte = 0_u8;
                // Without the byte the recorder is gone, and the command is not run.
                if libc::read(gate, (&raw mut byte).cast(), 1) == 1 {
                    libc::signal(libc::SIGPIPE, libc::SIG_DFL);
                    libc::signal(libc::SIGXFSZ, file_size);
                    libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
                    libc::pthread_sigmask(libc::SIG_SETMASK, &inheritance.mask, ptr::null_mut());
                    libc::execvpe(self.path.as_ptr(), arguments.as_ptr(), variables.as_ptr());
                    let error = *libc::__errno_location();
                    libc::write(failure, (&raw const error).cast(), size_of_val(&error));
                }
                libc::_exit(127);
            }
        }
        let pid =
            KernelPid::from_raw(pid).ok_or_else(|| Error::system("fork")(io::Error::last_os_error()))?;
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).map_err(Error::system("pidfd_open"))?;
        Ok(Child { pid, pidfd, gate: Some(gate_write), failure: failure_read })
    }
}

impl Child {
    /// Its process id, which the command will have.
    pub(crate) fn pid(&self) -> Pid {
        Pid(self.pid.as_raw_nonzero().get())
    }

    /// Lets it execute the command, and waits until it does.
    ///
    /// # Errors
    /// The command could not be executed.
    pub(crate) fn release(&mut self) -> io::Result<()> {
        if let Some(gate) = self.gate.take() {
            rustix::io::write(&gate, &[1])?;
        }
        let mut error = [0; 4];
        // The other end closes at exec.
        let read = rustix::io::retry_on_intr(|| rustix::io::read(&self.failure, &mut error))?;
        if read == error.len() {
            Err(io::Error::from_raw_os_error(i32::from_ne_bytes(error)))
        } else {
            Ok(())
        }
    }

    /// Sends a signal; a child that has ended does not get it.
    pub(crate) fn signal(&self, number: i32) {
        if let Some(signal) = Signal::from_named_raw(number) {
            let _ = kill_process(self.pid, signal);
        }
    }

    /// The exit status if it has ended, as a shell gives it. To be called when the descriptor is readable.
    /// The process stays a zombie until [`Child::reap`].
    pub(crate) fn ended(&self) -> Option<i32> {
        match self.wait(WaitIdOptions::NOWAIT) {
            Ok(None) | Err(Errno::INTR) => None,
            Ok(Some(status)) => Some(match (status.exit_status(), status.terminating_signal()) {
                (Some(code), _) => code,
                (_, Some(signal)) => 128 + signal,
                _ => 1,
            }),
            // Something else took its status.
            Err(_) => Some(1),
        }
    }

    /// Lets the kernel forget it, if it has ended. That can take long: not for a thread with a raised
    /// priority.
    pub(crate) fn reap(&self) {
        let _ = self.wait(WaitIdOptions::empty());
    }

    fn wait(&self, options: WaitIdOptions) -> Result<Option<WaitIdStatus>, Errno> {
        let options = options | WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
        waitid(WaitId::PidFd(self.pidfd.as_fd()), options)
    }
}

impl AsFd for Child {
    /// Readable once it has ended.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }
}

/// The recorder's environment with these variables changed.
fn environment(variables: &[(OsString, OsString)]) -> Vec<CString> {
    let others = env::vars_os().filter(|(name, _)| variables.iter().all(|(changed, _)| changed != name));
    others
        .chain(variables.iter().cloned())
        .filter_map(|(mut entry, value)| {
            entry.push("=");
            entry.push(value);
            CString::new(entry.into_vec()).ok()
        })
        .collect()
}

/// The executable that a shell would run for `name`.
fn look_up(name: &OsStr) -> Result<PathBuf, Errno> {
    let executable = |path: &Path| {
        access(path, Access::EXEC_OK)?;
        if path.is_dir() { Err(Errno::ACCESS) } else { Ok(()) }
    };
    if name.as_bytes().contains(&b'/') {
        return executable(Path::new(name)).map(|()| name.into());
    }
    if name.is_empty() {
        return Err(Errno::NOENT);
    }
    let mut result = Errno::NOENT;
    for folder in env::split_paths(&env::var_os("PATH").unwrap_or_else(|| DEFAULT_PATH.into())) {
        let path = if folder.as_os_str().is_empty() { Path::new(".").join(name) } else { folder.join(name) };
        match executable(&path) {
            Ok(()) => return Ok(path),
            Err(Errno::ACCESS) => result = Errno::ACCESS,
            Err(_) => {}
        }
    }
    Err(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_is_there_until_it_is_reaped() {
        let command = Command::find(&["sh".into(), "-c".into(), "exit 7".into()]).unwrap();
        // SAFETY: an all-zero set is a valid one.
        let mask = unsafe { std::mem::zeroed() };
        let open_files = rustix::process::getrlimit(rustix::process::Resource::Nofile);
        let inheritance = Inheritance { mask, file_size_signal: libc::SIG_DFL, open_files };
        let mut child = command.fork(&[], &inheritance).unwrap();
        child.release().unwrap();
        let begin = std::time::Instant::now();
        while child.ended().is_none() {
            assert!(begin.elapsed().as_secs() < 30);
            std::thread::yield_now();
        }
        assert_eq!(child.ended(), Some(7), "and again");
        child.reap();
        assert_eq!(rustix::process::test_kill_process(child.pid), Err(Errno::SRCH));
    }

    #[test]
    fn commands_are_found_as_a_shell_finds_them() {
        let status = |name: &str| Command::find(&[name.into()]).map_err(|error| error.exit_status()).err();
        assert_eq!(status("sh"), None);
        assert_eq!(status("/bin/sh"), None);
        assert_eq!(status("no-such-command-anywhere"), Some(127));
        assert_eq!(status("/no/such/command"), Some(127));
        assert_eq!(status(""), Some(127));
        assert_eq!(status("/"), Some(126));
        assert_eq!(status("/etc/passwd"), Some(126));
    }
}
