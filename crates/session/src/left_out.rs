//! Programs that did not join because they were filtered (seccomp) from their start, and say so in their
//! environment.
//!
//! The environment is in their memory: reading it can take as long as they want, and they can make it as long
//! as they want. So a thread reads it, of a bounded length, and only of processes that are this user's, or
//! were started by the recorder's command; strangers are not read at all.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::thread::Builder;
use std::time::{Duration, Instant};

use rustix::process::getuid;
use tracewing_abi::{LATE_VARIABLE, LEFT_OUT, SOCKET_VARIABLE};
use tracewing_proc::Status;
use tracewing_units::Pid;

use crate::program::parent;
use crate::seccomp::inherited;

/// Minimum time between two looks; at least 100 times as long as a look takes.
const INTERVAL: Duration = Duration::from_millis(250);
/// Time that a look may take when the recording ends.
const PATIENCE: Duration = Duration::from_secs(1);
/// Most programs that are reported because they have not joined.
const MOST_REPORTED: usize = 64;
/// Longest environment that is read, bytes: what `execve` takes with a stack of the usual 8 MiB.
const LONGEST_ENVIRONMENT: u64 = 2 << 20;
/// Generations between a process and the recorder.
const MOST_GENERATIONS: usize = 64;

/// What is known of programs that have not joined.
pub(crate) struct LeftOut {
    due: Instant,
    /// Those that were reported.
    reported: HashSet<Pid>,
    /// A look that is being taken.
    look: Option<Receiver<Look>>,
}

/// What a look has found, and how long it took.
struct Look(Vec<Pid>, Duration);

impl LeftOut {
    pub(crate) fn new() -> Self {
        Self { due: Instant::now(), reported: HashSet::new(), look: None }
    }

    /// Processes under the recorder that listens at `socket` that were found since the last call. Looks again
    /// if it is time for that.
    pub(crate) fn look(&mut self, socket: Option<&Path>) -> Vec<Pid> {
        let now = Instant::now();
        let found = match self.look.as_ref().map(Receiver::try_recv) {
            Some(Err(TryRecvError::Empty)) => return Vec::new(),
            Some(Ok(Look(found, time))) => {
                self.due = now + INTERVAL.max(100 * time);
                self.new_of(found)
            }
            Some(Err(TryRecvError::Disconnected)) | None => Vec::new(),
        };
        self.look = None;
        if now >= self.due {
            self.begin(socket);
        }
        found
    }

    /// Looks a last time, and waits for it a little. A process that has ended by now is not found.
    pub(crate) fn look_last(&mut self, socket: Option<&Path>) -> Vec<Pid> {
        let until = Instant::now() + PATIENCE;
        // A look that is under way may have passed by what came since.
        let Some(mut found) = self.wait(until) else { return Vec::new() };
        self.begin(socket);
        found.extend(self.wait(until).unwrap_or_default());
        found
    }

    /// What the look that is under way finds; `None` if it takes too long.
    fn wait(&mut self, until: Instant) -> Option<Vec<Pid>> {
        let Some(look) = self.look.take() else { return Some(Vec::new()) };
        let Look(found, _) = look.recv_timeout(until.saturating_duration_since(Instant::now())).ok()?;
        Some(self.new_of(found))
    }

    /// Has a thread take a look. One that does not come back is the last one.
    fn begin(&mut self, socket: Option<&Path>) {
        let Some(socket) = socket.map(Path::to_owned) else { return };
        let (found, look) = sync_channel(1);
        let reported = self.reported.clone();
        let work = move || {
            let begin = Instant::now();
            let all = left_out(&socket, &reported);
            let _ = found.send(Look(all, begin.elapsed()));
        };
        // Without a thread nothing is found.
        self.look = Builder::new().name("tracewing-look".to_owned()).spawn(work).is_ok().then_some(look);
    }

    /// Those that were not reported before, as long as there are not too many.
    fn new_of(&mut self, found: Vec<Pid>) -> Vec<Pid> {
        let room = MOST_REPORTED.saturating_sub(self.reported.len());
        found.into_iter().filter(|pid| self.reported.insert(*pid)).take(room).collect()
    }
}

fn left_out(socket: &Path, reported: &HashSet<Pid>) -> Vec<Pid> {
    let inherited = inherited();
    let is_left_out = |pid: &Pid| {
        Status::of(*pid).is_some_and(|status| {
            status.filters() > inherited && (is_own_users(&status) || is_descendant(*pid))
        }) && says_left_out(&environment(&PathBuf::from(format!("/proc/{pid}/environ"))), socket)
    };
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    processes.filter(|pid| !reported.contains(pid)).filter(is_left_out).take(MOST_REPORTED).collect()
}

/// Whether a process, by its `status`, is of this process's user now.
fn is_own_users(status: &Status) -> bool {
    status.users() == Some([getuid().as_raw(); 4])
}

/// Whether this process, or one that it has started, has started a process, found by the ancestors that still
/// live.
fn is_descendant(pid: Pid) -> bool {
    let ancestors = std::iter::successors(parent(pid), |pid| parent(*pid));
    let own = Pid::from_unsigned(std::process::id());
    ancestors.take(MOST_GENERATIONS).any(|pid| pid == own)
}

fn environment(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    // What could be read is read.
    let _ = File::open(path).and_then(|file| file.take(LONGEST_ENVIRONMENT).read_to_end(&mut bytes));
    bytes
}

/// Whether the program with this environment was started under the recorder that listens at `socket`, and has
/// not joined it.
fn says_left_out(environment: &[u8], socket: &Path) -> bool {
    let value = |name: &str| {
        let mut variables = environment.split(|byte| *byte == 0);
        variables.find_map(|variable| variable.strip_prefix(name.as_bytes())?.strip_prefix(b"="))
    };
    let names =
        |sockets: &[u8]| sockets.split(|byte| *byte == b':').any(|one| one == socket.as_os_str().as_bytes());
    value(LATE_VARIABLE) == Some(&[LEFT_OUT]) && value(SOCKET_VARIABLE).is_some_and(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_processes_of_this_user_or_of_the_recording_are_read() {
        let own = getuid().as_raw();
        let status = |users: [u32; 4]| {
            let users = users.map(|user| user.to_string()).join("\t");
            Status::from(format!("Name:\tUid:\nUid:\t{users}\nGid:\t0\n").as_str())
        };
        assert!(is_own_users(&status([own; 4])));
        assert!(!is_own_users(&status([own + 1, own, own, own])) && !is_own_users(&Status::from("")));
        let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        assert!(is_descendant(Pid::from_unsigned(child.id())) && !is_descendant(Pid(1)));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn an_environment_without_end_is_read_in_part() {
        assert_eq!(environment(Path::new("/dev/zero")).len() as u64, LONGEST_ENVIRONMENT);
    }
}
