//! Runs the programs that the user has named for archives and triggers: this process itself, or where it
//! gives up the rights that they are to have, a process that it has started before. That one runs these
//! programs and no others.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tracewing_helper::{Fields, Helper, Reply, Request, Server, Text};

/// Longest path of an archive or snapshot (`PATH_MAX`), and longest reason for a failure.
const LONGEST: u16 = 4096;
/// How long a program may run: for a year.
const PATIENCE: Duration = Duration::from_secs(365 * 24 * 60 * 60);

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
            None => run(command, path, io::stderr().as_fd().try_clone_to_owned().ok()),
            Some(elsewhere) => elsewhere.run(command, path).unwrap_or_else(|error| Some(error.to_string())),
        }
    }
}

impl Elsewhere {
    fn run(&self, command: &OsStr, path: Option<&Path>) -> io::Result<Option<String>> {
        let place = self.commands.iter().position(|known| known == command);
        let place = place.ok_or_else(|| io::Error::other("it was not named when the recording began"))?;
        let mut request = (place as u32).to_ne_bytes().to_vec();
        request.put_bytes(path.unwrap_or(Path::new("")).as_os_str().as_bytes(), LONGEST);
        let number = self.helper.begin(&request, &[io::stderr().as_fd()])?;
        let why = String::from_utf8_lossy(&self.helper.wait(number, PATIENCE)?.bytes).into_owned();
        Ok((!why.is_empty()).then_some(why))
    }
}

/// In the process that runs the programs: each on a thread of its own, since one may take long.
fn serve(server: &Server, commands: Vec<OsString>) {
    let commands = Arc::new(commands);
    while let Some(request) = server.next() {
        let (number, replier) = (request.number, server.replier());
        let Some((place, path, output)) = decode(request, commands.len()) else { return };
        let commands = commands.clone();
        let body = move || {
            let mut why = run(&commands[place], path.as_deref(), output).unwrap_or_default();
            why.truncate(why.floor_char_boundary(LONGEST.into()));
            let _ = replier.reply(number, &Reply::new(why));
        };
        if std::thread::Builder::new().spawn(body).is_err() {
            let _ = server.replier().reply(number, &Reply::new("there is no thread for it"));
        }
    }
}

/// Which program is to be run, with which path, and where its output goes.
fn decode(request: Request, commands: usize) -> Option<(usize, Option<PathBuf>, Option<OwnedFd>)> {
    let mut fields = Fields::of(&request.bytes);
    let place = fields.u32()? as usize;
    let path = fields.bytes(LONGEST)?;
    let path = (!path.is_empty()).then(|| PathBuf::from(OsStr::from_bytes(path)));
    let output = request.files.into_iter().next();
    (place < commands && fields.is_end()).then_some((place, path, output))
}

/// Runs a program with this output and these errors.
fn run(command: &OsStr, path: Option<&Path>, output: Option<OwnedFd>) -> Option<String> {
    let errors = output.as_ref().and_then(|output| output.try_clone().ok());
    let [output, errors] = [output, errors].map(|file| file.map_or_else(Stdio::null, Stdio::from));
    let mut program = Command::new(command);
    program.args(path).stdin(Stdio::null()).stdout(output).stderr(errors).process_group(0);
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
        let runner = Runner::start(vec!["true".into()]).unwrap();
        assert_eq!(runner.run("true".as_ref(), None), None);
        assert!(runner.run("false".as_ref(), None).unwrap().contains("not named"));
        let helper = runner.helper().unwrap();
        let number = helper.begin(&[1, 0, 0, 0, 0, 0], &[]).unwrap();
        assert_eq!(helper.wait(number, PATIENCE).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        assert!(Runner::start(Vec::new()).unwrap().helper().is_none());
    }
}
