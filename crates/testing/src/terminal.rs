//! Programs on a pseudo-terminal.

use std::fs::File;
use std::io::{Error, Read, Result};
use std::os::fd::{FromRawFd, OwnedFd};
use std::process::{Command, ExitStatus, Stdio};

/// Runs a command whose standard output and standard error are a pseudo-terminal of 80 columns, and returns
/// its output.
///
/// # Errors
/// No pseudo-terminal can be created.
///
/// # Panics
/// The command cannot be started.
pub fn on_terminal(mut command: Command) -> Result<(ExitStatus, Vec<u8>)> {
    let (ours, theirs) = open()?;
    let error = theirs.try_clone()?;
    command.stdin(Stdio::null()).stdout(theirs).stderr(error);
    let mut child = command.spawn().expect("the command can be started");
    // The command holds the terminal's other end until it is dropped.
    drop(command);
    let mut output = Vec::new();
    // EIO when the other end is closed.
    let _ = File::from(ours).read_to_end(&mut output);
    Ok((child.wait()?, output))
}

fn open() -> Result<(OwnedFd, OwnedFd)> {
    let size = libc::winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
    let (mut ours, mut theirs) = (-1, -1);
    // SAFETY: both descriptors are written, the size is read, and the other outputs are not requested.
    let failed =
        unsafe { libc::openpty(&mut ours, &mut theirs, std::ptr::null_mut(), std::ptr::null(), &size) };
    if failed != 0 {
        return Err(Error::last_os_error());
    }
    // SAFETY: both were opened above, and nothing else owns them.
    Ok(unsafe { (OwnedFd::from_raw_fd(ours), OwnedFd::from_raw_fd(theirs)) })
}
