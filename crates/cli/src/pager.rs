//! The pager: what a command prints on a terminal goes through `$TRACEWING_PAGER`, `$PAGER`, or `less -FRX`,
//! as git does it.
//!
//! It starts with the first output, so a bar that shows progress is gone by then. Standard output and, where
//! that is a terminal, standard error become its pipe. Quitting it early ends the command: writing fails
//! with `EPIPE`, which is no error.

use crate::terminal::terminal;
use rustix::io::fcntl_dupfd_cloexec;
use rustix::stdio::{dup2_stderr, dup2_stdout};
use signal_hook::consts::SIGINT;
use std::fs::File;
use std::io::{ErrorKind, IsTerminal, Write, stderr, stdout};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::{fmt, io};

/// What pages where no variable says it.
const DEFAULT: &str = "less";

/// Settings of `less` where the user has none: it ends at once if all fits, shows colours, and leaves the
/// screen as it is.
const LESS: &str = "FRX";

/// Characters by which a command is one for the shell.
const OF_SHELL: &str = "|&;<>()$`\\\"'*?[#~=%\t\n";

static STATE: Mutex<State> = Mutex::new(State::Off);

enum State {
    Off,
    /// The first output starts it.
    Allowed,
    Running(Running),
}

/// The pager of the user's choice does not start.
#[derive(Debug)]
pub struct Error {
    command: String,
    cause: io::Error,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { command, cause } = self;
        write!(f, "cannot start the pager `{command}`: {cause}; output goes to the terminal without one")
    }
}

struct Running {
    child: Child,
    stderr: Option<OwnedFd>,
}

/// The time in which a pager may run; its end waits for it.
#[must_use]
pub struct Paging(());

/// From now on, a pager shows what is printed, if standard output is a terminal.
pub fn allow() -> Paging {
    set(State::Allowed);
    Paging(())
}

impl Drop for Paging {
    fn drop(&mut self) {
        let _ = stdout().flush();
        if let State::Running(running) = set(State::Off) {
            running.finish();
        }
    }
}

fn set(state: State) -> State {
    std::mem::replace(&mut STATE.lock().unwrap_or_else(PoisonError::into_inner), state)
}

/// Starts the pager, if one is allowed and does not run yet.
///
/// # Errors
/// The pager that a variable names cannot be started; this is reported once.
pub fn start() -> Result<(), Error> {
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    if !matches!(*state, State::Allowed) {
        return Ok(());
    }
    *state = State::Off;
    // Their width and colours are asked for while they are terminals.
    if !terminal().is_terminal {
        return Ok(());
    }
    let Some(words) = words() else { return Ok(()) };
    match Running::start(&words) {
        Ok(running) => *state = State::Running(running),
        // Without `less`, output is as it is without a pager.
        Err(error) if error.kind() == ErrorKind::NotFound && words[0] == DEFAULT => {}
        Err(cause) => return Err(Error { command: words.join(" "), cause }),
    }
    Ok(())
}

/// The command that pages, if one is to.
fn words() -> Option<Vec<String>> {
    let chosen = ["TRACEWING_PAGER", "PAGER"].iter().find_map(|name| std::env::var(name).ok());
    let chosen = chosen.unwrap_or_else(|| DEFAULT.to_owned());
    match chosen.trim() {
        "" | "cat" => None,
        command if command.contains(|c| OF_SHELL.contains(c)) => {
            Some(["sh", "-c", command].map(str::to_owned).to_vec())
        }
        command => Some(command.split_whitespace().map(str::to_owned).collect()),
    }
}

impl Running {
    fn start(words: &[String]) -> io::Result<Self> {
        let saved = stderr().is_terminal().then(|| fcntl_dupfd_cloexec(stderr(), 0)).transpose()?;
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stdin(Stdio::piped());
        if std::env::var_os("LESS").is_none() {
            command.env("LESS", LESS);
        }
        // Ctrl-C is for the pager, which shares the terminal: this process ends when the pager does.
        if !tracewing_session::is_ignored(SIGINT) {
            signal_hook::flag::register(SIGINT, Arc::new(AtomicBool::new(false)))?;
        }
        let mut child = command.spawn()?;
        if let Some(pipe) = child.stdin.take() {
            dup2_stdout(&pipe)?;
            if saved.is_some() {
                dup2_stderr(&pipe)?;
            }
        }
        Ok(Running { child, stderr: saved })
    }

    /// Gives the pager the end of its input, and waits for it.
    fn finish(mut self) {
        // What fails here fails on the way out, and the result has been printed. Output that a pager no
        // longer took is for nothing.
        let _ = File::open("/dev/null").map(dup2_stdout);
        if let Some(stderr) = &self.stderr {
            let _ = dup2_stderr(stderr);
        }
        let _ = self.child.wait();
    }
}
