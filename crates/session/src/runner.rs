//! Runs the programs that the user has named for archives and triggers: this process itself, or where it
//! gives up the rights that they are to have, a process that it has started before. That one runs these
//! programs and no others.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tracewing_helper::{Fields, Helper, Reply, Request, Server, Text};

/// Longest path of an archive or snapshot (`PATH_MAX`), and longest reason for a failure.
const LONGEST: u16 = 4096;
/// How long a program may run: for a year.
const PATIENCE: Duration = Duration::from_secs(365 * 24 * 60 * 60);
const STARTING: Duration = Duration::from_secs(5);

/// Runs programs. Clones run them in the same process.
#[derive(Debug, Clone, Default)]
pub(crate) struct Runner(Option<Arc<Elsewhere>>);

#[derive(Debug)]
struct Elsewhere {
    helper: Arc<Helper>,
    commands: Vec<OsString>,
}

impl Runner {
    /// Starts a process that runs these programs; none if there are none.
    ///
    /// # Errors
    /// The system refuses a process or a descriptor.
    pub(crate) fn start(commands: Vec<OsString>) -> io::Result<Self> {
        if commands.is_empty() {
            return Ok(Self::default());
        }
        let known = commands.clone();
        let helper = Helper::start_with_all_rights(c"tracewing-runs", |server| serve(&server, known))?;
        // Now, before the recorder reads anything of programs: later requests bring no descriptors.
        let output = helper.begin(&[], &[io::stderr().as_fd()])?;
        helper.wait(output, STARTING)?;
        Ok(Self(Some(Arc::new(Elsewhere { helper: Arc::new(helper), commands }))))
    }

    /// The process, if there is one.
    pub(crate) fn helper(&self) -> Option<&Arc<Helper>> {
        self.0.as_ref().map(|elsewhere| &elsewhere.helper)
    }

    /// Runs a program to its end, and gives why it has failed. What it prints goes where the recorder's
    /// messages go. It has a process group of its own, so that Ctrl-C ends the recording and not what it
    /// does.
    pub(crate) fn run(&self, command: &OsStr, path: Option<&Path>) -> Option<String> {
        match &self.0 {
            None => run(command, path, io::stderr().as_fd()),
            Some(elsewhere) => elsewhere.run(command, path).unwrap_or_else(|error| Some(error.to_string())),
        }
    }
}

impl Elsewhere {
    fn run(&self, command: &OsStr, path: Option<&Path>) -> io::Result<Option<String>> {
        let place = self.commands.iter().position(|known| known == command);
        let place = place.ok_or_else(|| io::Error::other("it was not named when the recording began"))?;
        let path = path.map(std::path::absolute).transpose()?.unwrap_or_default();
        let mut request = (place as u32).to_ne_bytes().to_vec();
        request.put_bytes(path.as_os_str().as_bytes(), LONGEST);
        let number = self.helper.begin(&request, &[])?;
        let why = String::from_utf8_lossy(&self.helper.wait(number, PATIENCE)?.bytes).into_owned();
        Ok((!why.is_empty()).then_some(why))
    }
}

/// In the process that runs the programs: each on a thread of its own, since one may take long.
fn serve(server: &Server, commands: Vec<OsString>) {
    let Some(first) = server.next() else { return };
    let Some(output) = first.files.into_iter().next() else { return };
    if server.replier().reply(first.number, &Reply::default()).is_err() {
        return;
    }
    let shared = Arc::new((commands, output));
    while let Some(request) = server.next() {
        let (number, replier) = (request.number, server.replier());
        let Some((place, path)) = decode(&request, shared.0.len()) else { return };
        let shared = shared.clone();
        let body = move || {
            let (commands, output) = &*shared;
            let mut why = run(&commands[place], path.as_deref(), output.as_fd()).unwrap_or_default();
            why.truncate(why.floor_char_boundary(LONGEST.into()));
            let _ = replier.reply(number, &Reply::new(why));
        };
        if std::thread::Builder::new().spawn(body).is_err() {
            let _ = server.replier().reply(number, &Reply::new("there is no thread for it"));
        }
    }
}

/// Which program is to be run, and with which path: an absolute one, which no program takes for an option.
fn decode(Request { bytes, files, .. }: &Request, commands: usize) -> Option<(usize, Option<PathBuf>)> {
    let mut fields = Fields::of(bytes);
    let place = fields.u32()? as usize;
    let path = Path::new(OsStr::from_bytes(fields.bytes(LONGEST)?));
    let path = (path != Path::new("")).then(|| path.to_owned());
    let is_plain = path
        .as_ref()
        .is_none_or(|path| path.is_absolute() && !path.components().any(|part| part == Component::ParentDir));
    (place < commands && is_plain && fields.is_end() && files.is_empty()).then_some((place, path))
}

/// Runs a program with this output, which is also for its errors, and without the signals that its recorder
/// or this process has blocked.
fn run(command: &OsStr, path: Option<&Path>, output: BorrowedFd<'_>) -> Option<String> {
    let file = || output.try_clone_to_owned().map_or_else(|_| Stdio::null(), Stdio::from);
    let mut program = Command::new(command);
    program.args(path).stdin(Stdio::null()).stdout(file()).stderr(file()).process_group(0);
    // SAFETY: between `fork` and `exec`, only functions are called that may be (signal-safety(7)), with a set
    // that the first one initialises.
    unsafe {
        program.pre_exec(|| {
            let mut none = std::mem::zeroed();
            libc::sigemptyset(&raw mut none);
            libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
            Ok(())
        });
    }
    match program.status() {
        Err(error) => Some(error.to_string()),
        Ok(status) if status.success() => None,
        Ok(status) => Some(match (status.code(), status.signal()) {
            (Some(code), _) => format!("exit status {code}"),
            (None, Some(signal)) => format!("signal {signal}"),
            (None, None) => "no exit status".to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_run_as_here_and_in_another_process() {
        let commands = ["mkdir", "false", "/no/such/command"].map(OsString::from);
        let place = tempfile::tempdir().unwrap();
        for (name, runner) in
            [("here", Runner::default()), ("there", Runner::start(commands.to_vec()).unwrap())]
        {
            let folder = place.path().join(name);
            let run = |command: &str| runner.run(command.as_ref(), Some(&folder));
            assert_eq!(run("mkdir"), None);
            assert!(folder.is_dir());
            assert_eq!(run("mkdir").unwrap(), "exit status 1", "it is there");
            assert_eq!(run("false").unwrap(), "exit status 1");
            assert!(run("/no/such/command").unwrap().contains("No such file"));
        }
    }

    #[test]
    fn nothing_else_runs_in_the_other_process() {
        let start = || Runner::start(vec!["true".into()]).unwrap();
        assert_eq!(start().run("true".as_ref(), None), None);
        assert!(start().run("false".as_ref(), None).unwrap().contains("not named"));
        assert!(Runner::start(Vec::new()).unwrap().helper().is_none());
        let asked = |place: u32, path: &[u8], files: &[BorrowedFd<'_>]| {
            let runner = start();
            let helper = runner.helper().unwrap();
            let mut request = place.to_ne_bytes().to_vec();
            request.put_bytes(path, LONGEST);
            let number = helper.begin(&request, files).unwrap();
            helper.wait(number, PATIENCE).map(|reply| reply.bytes).map_err(|error| error.kind())
        };
        assert_eq!(asked(0, b"/archive", &[]), Ok(Vec::new()));
        let refused = Err(io::ErrorKind::BrokenPipe);
        assert_eq!(asked(1, b"", &[]), refused, "no such program");
        assert_eq!(asked(0, b"--option", &[]), refused);
        assert_eq!(asked(0, b"/archives/../etc", &[]), refused);
        assert_eq!(asked(0, b"/archive", &[io::stderr().as_fd()]), refused, "another output");
    }

    #[test]
    fn no_signal_is_blocked_in_what_runs() {
        let place = tempfile::tempdir().unwrap();
        let script = place.path().join("status");
        std::fs::write(&script, "#!/bin/sh\ngrep ^Sig /proc/self/status > \"$1\"\n").unwrap();
        rustix::fs::chmod(&script, rustix::fs::Mode::RWXU).unwrap();
        for runner in [Runner::default(), Runner::start(vec![script.clone().into()]).unwrap()] {
            let out = place.path().join("out");
            assert_eq!(runner.run(script.as_os_str(), Some(&out)), None);
            let status = std::fs::read_to_string(&out).unwrap();
            assert!(status.contains("SigBlk:\t0000000000000000\n"), "{status}");
        }
    }
}
