//! Programs on a pseudo-terminal.

use std::fs::File;
use std::io::{Error, Read, Result, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Time that a program has to print what is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

/// Bytes of its output that a message has.
const SHOWN: usize = 4000;

/// A program whose terminal is a pseudo-terminal of 80 columns.
#[derive(Debug)]
pub struct OnTerminal {
    /// The program.
    pub child: Child,
    terminal: File,
    output: Receiver<Vec<u8>>,
    /// What it has printed so far.
    pub printed: Vec<u8>,
}

impl OnTerminal {
    /// Starts a command in a session of its own.
    ///
    /// # Errors
    /// No pseudo-terminal can be created, or the command not started.
    pub fn start(mut command: Command) -> Result<Self> {
        let (ours, theirs) = open()?;
        command.stdin(theirs.try_clone()?).stdout(theirs.try_clone()?).stderr(theirs);
        // SAFETY: both calls may be made between fork and exec, and standard input is the terminal by then.
        unsafe {
            command.pre_exec(|| {
                let failed = libc::setsid() < 0 || libc::ioctl(0, libc::TIOCSCTTY, 0) < 0;
                if failed { Err(Error::last_os_error()) } else { Ok(()) }
            });
        }
        let child = command.spawn()?;
        let terminal = File::from(ours);
        let (sender, output) = channel();
        let mut reader = terminal.try_clone()?;
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // EIO when the other end is closed.
            while let Ok(count @ 1..) = reader.read(&mut bytes) {
                if sender.send(bytes[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Ok(Self { child, terminal, output, printed: Vec::new() })
    }

    /// Waits until the program prints `text`, from now on.
    ///
    /// # Panics
    /// It does not, within a minute.
    pub fn wait_for(&mut self, text: &str) {
        let (from, begin) = (self.printed.len(), Instant::now());
        while !String::from_utf8_lossy(&self.printed[from..]).contains(text) {
            match self.output.recv_timeout(PATIENCE.saturating_sub(begin.elapsed())) {
                Ok(bytes) => self.printed.extend(bytes),
                Err(error) => {
                    let last = self.printed.len().saturating_sub(SHOWN).max(from);
                    panic!("{error}: no {text:?} in {:?}", String::from_utf8_lossy(&self.printed[last..]))
                }
            }
        }
    }

    /// Types at the terminal.
    ///
    /// # Panics
    /// The terminal is gone.
    pub fn types(&mut self, keys: &str) {
        self.terminal.write_all(keys.as_bytes()).expect("the terminal takes keys");
    }

    /// Whether the terminal gives whole lines, and shows what is typed, as it did before.
    ///
    /// # Panics
    /// The terminal is gone.
    pub fn is_as_before(&self) -> bool {
        // SAFETY: all zeros are a valid value.
        let mut modes: libc::termios = unsafe { std::mem::zeroed() };
        // SAFETY: the descriptor is open, and the call writes to `modes` only.
        let failed = unsafe { libc::tcgetattr(self.terminal.as_raw_fd(), &mut modes) };
        assert_eq!(failed, 0, "the terminal has modes");
        modes.c_lflag & (libc::ICANON | libc::ECHO) == libc::ICANON | libc::ECHO
    }

    /// Waits for the end.
    ///
    /// # Panics
    /// It cannot be waited for.
    pub fn ends(&mut self) -> ExitStatus {
        let status = self.child.wait().expect("the child can be waited for");
        while let Ok(bytes) = self.output.recv_timeout(Duration::from_millis(200)) {
            self.printed.extend(bytes);
        }
        status
    }
}

impl Drop for OnTerminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

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
