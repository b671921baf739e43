//! Programs that did not join because they were filtered (seccomp) from their start, and say so in their
//! environment.
//!
//! What stands there is their memory: reading it can take as long as they want, and they can make it as long
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

use crate::filters::{filters, own};
use crate::program::{Program, parent};
use crate::recorder::Recorder;

/// Time between two looks; longer where looking takes more than a hundredth of it.
const INTERVAL: Duration = Duration::from_millis(250);
/// Time that a look may take when the recording ends.
const PATIENCE: Duration = Duration::from_secs(1);
/// Most programs that are reported because they have not joined.
const MOST_TOLD: usize = 64;
/// Longest environment that is read, bytes: what `execve` takes with a stack of the usual 8 MiB.
const LONGEST_ENVIRONMENT: u64 = 2 << 20;
/// Generations between a process and the recorder.
const MOST_GENERATIONS: usize = 64;

/// What is known of programs that have not joined.
pub(crate) struct LeftOut {
    due: Instant,
    /// Those of which the user knows.
    told: HashSet<i32>,
    /// A look that is being taken.
    look: Option<Receiver<Look>>,
}

/// What a look has found, and how long it took.
struct Look(Vec<i32>, Duration);

impl LeftOut {
    pub(crate) fn new() -> Self {
        Self { due: Instant::now(), told: HashSet::new(), look: None }
    }

    /// Has a thread take a look. One that does not come back is the last one.
    fn begin(&mut self, socket: &Path) {
        let (found, look) = sync_channel(1);
        let (socket, told) = (socket.to_owned(), self.told.clone());
        let work = move || {
            let begin = Instant::now();
            let all = left_out(&socket, &told);
            let _ = found.send(Look(all, begin.elapsed()));
        };
        // Without a thread nothing is found.
        self.look = Builder::new().name("tracewing-look".to_owned()).spawn(work).is_ok().then_some(look);
    }
}

impl Recorder<'_> {
    /// Tells the user of programs that were found since the last call, and looks again if it is time for
    /// that.
    pub(crate) fn look_for_left_out(&mut self) {
        let now = Instant::now();
        match self.watches.left_out.look.as_ref().map(Receiver::try_recv) {
            Some(Err(TryRecvError::Empty)) => return,
            Some(Ok(Look(found, time))) => {
                self.tell_of_left_out(found);
                self.watches.left_out.due = now + INTERVAL.max(100 * time);
            }
            Some(Err(TryRecvError::Disconnected)) | None => {}
        }
        self.watches.left_out.look = None;
        if now >= self.watches.left_out.due {
            self.begin_look();
        }
    }

    /// Looks a last time, and waits for it a little. One that has ended by now is not noticed.
    pub(crate) fn find_left_out(&mut self) {
        let until = Instant::now() + PATIENCE;
        // One that is under way may have passed by what came since.
        if self.wait_for_look(until) {
            self.begin_look();
            self.wait_for_look(until);
        }
    }

    /// Whether no look is under way any more.
    fn wait_for_look(&mut self, until: Instant) -> bool {
        let Some(look) = self.watches.left_out.look.take() else { return true };
        let found = look.recv_timeout(until.saturating_duration_since(Instant::now()));
        if let Ok(Look(found, _)) = found {
            self.tell_of_left_out(found);
            return true;
        }
        false
    }

    fn begin_look(&mut self) {
        if let Some(socket) = self.entrance.listener.as_ref().map(|listener| listener.path().to_owned()) {
            self.watches.left_out.begin(&socket);
        }
    }

    fn tell_of_left_out(&mut self, found: Vec<i32>) {
        for pid in found {
            if self.watches.left_out.told.len() < MOST_TOLD && self.watches.left_out.told.insert(pid) {
                let name = Program::of(pid).name;
                self.join.note(format!(
                    "process {pid} ({name}) is not recorded: it was filtered by seccomp when it started"
                ));
            }
        }
    }
}

fn left_out(socket: &Path, told: &HashSet<i32>) -> Vec<i32> {
    let own = own();
    let is_left_out = |pid: &i32| {
        let status = fs::read(format!("/proc/{pid}/status")).unwrap_or_default();
        let status = String::from_utf8_lossy(&status);
        filters(&status) > own
            && (is_own_users(&status) || is_descendant(*pid))
            && says_left_out(&environment(&PathBuf::from(format!("/proc/{pid}/environ"))), socket)
    };
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    processes.filter(|pid| !told.contains(pid)).filter(is_left_out).take(MOST_TOLD).collect()
}

/// Whether a process, by its `status`, is of this process's user now.
fn is_own_users(status: &str) -> bool {
    let mut users = status.lines().filter_map(|line| line.strip_prefix("Uid:"));
    let own = getuid().as_raw().to_string();
    users.next().is_some_and(|users| users.split_whitespace().all(|user| user == own))
}

/// Whether this process, or one that it has started, has started a process, as far as its ancestors live.
fn is_descendant(pid: i32) -> bool {
    let ancestors = std::iter::successors(parent(pid), |pid| parent(*pid));
    let own = std::process::id();
    ancestors.take(MOST_GENERATIONS).any(|pid| pid.unsigned_abs() == own)
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
            format!("Name:\tUid:\nUid:\t{}\nGid:\t0\n", users.map(|user| user.to_string()).join("\t"))
        };
        assert!(is_own_users(&status([own; 4])));
        assert!(!is_own_users(&status([own + 1, own, own, own])) && !is_own_users(""));
        let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        assert!(is_descendant(child.id() as i32) && !is_descendant(1));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn an_environment_without_end_is_read_in_part() {
        assert_eq!(environment(Path::new("/dev/zero")).len() as u64, LONGEST_ENVIRONMENT);
    }
}
