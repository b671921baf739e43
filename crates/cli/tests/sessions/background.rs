//! Sessions of a test: in a folder of its own, stopped when it ends.

use crate::harness::{self, Json, Printed, RunExt};
use crate::recorded::program;
use rustix::fs::{FlockOperation, flock};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept, bind, listen, socket_with,
};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tracewing_testing::{STRANGER, am_root, wait_until};

static ALONE: Mutex<()> = Mutex::new(());

/// The sessions, in a folder that is also the one for running programs and for states.
pub struct Background {
    folder: tempfile::TempDir,
    /// Words before the command, which make it another user's.
    before: Vec<String>,
    /// The folder for running programs, as that of a login session.
    run: PathBuf,
    _alone: MutexGuard<'static, ()>,
}

impl Background {
    pub fn new() -> Self {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path().join("run");
        fs::create_dir(&run).unwrap();
        rustix::fs::chmod(&run, rustix::fs::Mode::RWXU).unwrap();
        Self { folder, before: Vec::new(), run, _alone: alone }
    }

    /// The same of another user, which needs root.
    pub fn of_user(user: u32) -> Self {
        let mut this = Self::new();
        for path in [this.folder.path(), &this.run] {
            std::os::unix::fs::chown(path, Some(user), Some(user)).unwrap();
        }
        this.before = as_user(user);
        this
    }

    /// Recorders have their sockets in `/tmp`, where commands of root look for those of other users: the path
    /// of the folder for running programs is too long for sockets.
    pub fn with_sockets_in_tmp(mut self) -> Self {
        let long = self.folder().join("run-".repeat(30));
        fs::rename(&self.run, &long).unwrap();
        self.run = long;
        self
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The list of recorders that programs read.
    pub fn join_file(&self) -> PathBuf {
        match am_root() && self.before.is_empty() {
            true => "/run/tracewing/join".into(),
            false => self.run.join("tracewing/join"),
        }
    }

    /// A program that is run with the folder's variables.
    pub fn command(&self, before: &[String], program: impl AsRef<Path>) -> Command {
        let mut command = match before {
            [] => Command::new(program.as_ref()),
            [first, rest @ ..] => {
                let mut command = Command::new(first);
                command.args(rest).arg(program.as_ref());
                command
            }
        };
        command.current_dir(self.folder()).env("XDG_CONFIG_HOME", "/nonexistent");
        command.env("XDG_STATE_HOME", self.folder().join("state")).env("XDG_RUNTIME_DIR", &self.run);
        command.stdin(Stdio::null());
        command
    }

    pub fn ran(&self, line: &str) -> Output {
        self.command(&self.before, harness::TRACEWING).args(line.split(' ')).ran()
    }

    pub fn succeeds(&self, line: &str) -> Output {
        let output = self.ran(line);
        assert!(output.status.success(), "{line}: {}", output.notes());
        output
    }

    /// What a command says that fails.
    pub fn fails(&self, line: &str) -> String {
        let output = self.ran(line);
        assert!(!output.status.success(), "{line}: {}", output.text());
        output.notes()
    }

    /// Starts a session, and gives the folder of this start.
    pub fn start(&self, name: &str) -> PathBuf {
        self.succeeds(&format!("session start {name}")).text().trim_end().into()
    }

    /// What `status` says of a channel or a trigger. It fails if one has ended.
    pub fn channel(&self, session: &str, channel: &str) -> Value {
        let status = self.ran(&format!("session status {session} --format json")).json();
        let rows = status["channels"].as_array().unwrap();
        rows.iter().find(|row| row["channel"] == channel).unwrap().clone()
    }

    /// Process ids of all recorders of sessions.
    pub fn recorders(&self) -> Vec<u32> {
        let status = self.ran("session status --format json").json();
        let rows = status["channels"].as_array().unwrap();
        let of_sessions = rows.iter().filter(|row| row["session"].is_string());
        of_sessions.filter_map(|row| row["recorder"].as_u64()).map(|pid| pid as u32).collect()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let names = self.ran("session list --format json").text();
        for line in names.lines() {
            let session: Value = serde_json::from_str(line).unwrap_or_default();
            if session["state"] == "started" {
                self.ran(&format!("session stop {}", session["session"].as_str().unwrap_or_default()));
            }
        }
    }
}

pub fn as_user(user: u32) -> Vec<String> {
    ["setpriv", &format!("--reuid={user}"), &format!("--regid={user}"), "--clear-groups"]
        .map(str::to_owned)
        .into()
}

/// Another user's process, if there is one, that holds a lock on a folder.
pub struct Holder(Child);

impl Holder {
    pub fn lock(sessions: &Background, folder: &Path) -> Self {
        let user = if am_root() { as_user(STRANGER) } else { Vec::new() };
        Self::lock_as(sessions, &user, folder)
    }

    pub fn lock_as(sessions: &Background, user: &[String], folder: &Path) -> Self {
        let mut command = sessions.command(user, "flock");
        let holder = Self(command.args(["-x", "-F"]).arg(folder).args(["sleep", "600"]).spawn().unwrap());
        let file = fs::File::open(folder).unwrap();
        wait_until("it is locked", || {
            flock(&file, FlockOperation::NonBlockingLockShared).is_err() || {
                flock(&file, FlockOperation::Unlock).unwrap();
                false
            }
        });
        holder
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The program `pilot`, which nothing records unless a session does.
pub struct Pilot {
    process: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Pilot {
    pub fn start(sessions: &Background) -> Self {
        Self::run(sessions, &[])
    }

    pub fn run(sessions: &Background, before: &[String]) -> Self {
        Self::spawn(&mut sessions.command(before, program("pilot")))
    }

    /// One that counts in a file, which says what each thread had emitted when it was killed.
    pub fn counting(sessions: &Background, before: &[String], file: &Path) -> Self {
        fs::write(file, "").unwrap();
        fs::set_permissions(file, fs::Permissions::from_mode(0o666)).unwrap();
        Self::spawn(sessions.command(before, program("pilot")).env("PILOT_COUNTS", file))
    }

    /// One that waits so many milliseconds for recorders.
    pub fn waiting(sessions: &Background, before: &[String], milliseconds: &str) -> Self {
        Self::spawn(sessions.command(before, program("pilot")).env("TRACEWING_WAIT", milliseconds))
    }

    fn spawn(command: &mut Command) -> Self {
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (orders, answers) = (process.stdin.take(), BufReader::new(process.stdout.take().unwrap()));
        let mut this = Self { process, orders, answers };
        this.emit(0); // it runs
        this
    }

    /// Every thread emits so many events. How many all have emitted since the program began.
    pub fn emit(&mut self, events: u64) -> u64 {
        writeln!(self.orders.as_mut().unwrap(), "emit {events}").unwrap();
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        answer.trim_end().split(' ').map(|number| number.parse::<u64>().unwrap()).sum()
    }

    /// Ends it by SIGKILL this long after it was ordered to emit so many events. What its threads had counted
    /// in `file` by then: each may have emitted one more.
    pub fn kill_while_it_emits(&mut self, events: u64, after: Duration, file: &Path) -> Vec<u64> {
        writeln!(self.orders.as_mut().unwrap(), "emit {events}").unwrap();
        std::thread::sleep(after);
        self.kill();
        self.process.wait().unwrap();
        let counts = fs::read(file).unwrap();
        counts.chunks_exact(8).map(|count| u64::from_ne_bytes(count.try_into().unwrap())).collect()
    }

    /// Ends it by SIGKILL.
    pub fn kill(&mut self) {
        self.process.kill().unwrap();
    }

    pub fn id(&self) -> u32 {
        self.process.id()
    }

    pub fn threads(&self) -> usize {
        self.tids().len()
    }

    /// Ids of all its threads.
    pub fn tids(&self) -> Vec<i64> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.process.id())).unwrap();
        tasks.map(|task| task.unwrap().file_name().to_str().unwrap().parse().unwrap()).collect()
    }
}

impl Drop for Pilot {
    fn drop(&mut self) {
        self.orders = None;
        let _ = self.process.wait();
    }
}

/// A socket like a recorder's, that never answers.
pub struct Silent(OwnedFd);

impl Silent {
    pub fn listen(path: &Path) -> Self {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
        bind(&socket, &SocketAddrUnix::new(path).unwrap()).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o666)).unwrap();
        listen(&socket, 8).unwrap();
        Self(socket)
    }

    pub fn has_been_connected_to(&self) -> bool {
        accept(&self.0).is_ok()
    }
}
