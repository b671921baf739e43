//! Signals of programs that tests start: the same as at a terminal, however the tests themselves were
//! started.

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::{io, mem, ptr};

/// Signals that `nohup`, or a script for its background commands, ignores.
const STOPPING: [libc::c_int; 4] = [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP];

/// Makes a command start with stopping signals neither ignored nor blocked: otherwise a test that sends one
/// of them would wait without success if the tests run under `nohup` or in the background of a script.
pub fn with_default_signals(command: &mut Command) -> &mut Command {
    let prepare = || {
        // SAFETY: all of these may be called after a fork; the set is a live local.
        unsafe {
            let mut set: libc::sigset_t = mem::zeroed();
            libc::sigemptyset(&mut set);
            for signal in STOPPING {
                libc::sigaddset(&mut set, signal);
                if libc::signal(signal, libc::SIG_DFL) == libc::SIG_ERR {
                    return Err(io::Error::last_os_error());
                }
            }
            match libc::sigprocmask(libc::SIG_UNBLOCK, &set, ptr::null_mut()) {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            }
        }
    };
    // SAFETY: it allocates nothing and takes no locks.
    unsafe { command.pre_exec(prepare) }
}

/// Sends a signal to a process.
///
/// # Panics
/// The process does not exist, or belongs to another user.
pub fn signal(process: u32, signal: libc::c_int) {
    // SAFETY: two numbers.
    let failed = unsafe { libc::kill(process.cast_signed(), signal) };
    assert_eq!(failed, 0, "{}", io::Error::last_os_error());
}
