//! Processes that answer a recorder that attaches to them wrongly, late, or without end
//! (`crates/attach/examples/hostile.rs`), together with an honest one: that is recorded without loss, the
//! recorder ends when it is asked to, and says what it could not record. And what other users can do to an
//! attached process and its recorder.

use super::*;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::LazyLock;
use tracewing_testing::{NOBODY, STRANGER, become_user};

static HOSTILE: LazyLock<PathBuf> = LazyLock::new(|| {
    recorded::build(&["-p", "tracewing-attach", "--example", "hostile"]).join("examples/hostile")
});

/// A hostile process. It is killed when dropped.
struct Hostile {
    child: Child,
    pid: u32,
}

impl Hostile {
    fn start(way: &str, user: u32) -> Self {
        let mut command = Command::new(&*HOSTILE);
        command.arg(way).stdin(Stdio::piped()).stdout(Stdio::piped());
        if user != 0 {
            // What its user cannot read it executes all the same.
            command.uid(user).gid(user).current_dir("/");
        }
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { child, pid: line.trim().parse().unwrap() }
    }

    /// It continues, and ends as it would have.
    fn end(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Hostile {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Records an honest process together with a hostile one, and returns what the recorder says. The recorder is
/// asked to end once the honest one has emitted, whatever the hostile one does.
fn with_honest_program(way: &str, user: u32) -> String {
    let folder = tempfile::tempdir().unwrap();
    let hostile = Hostile::start(way, user);
    let mut honest = Resident::start();
    let trace = folder.path().join("t");
    let pids = format!("{},{}", hostile.pid, honest.pid);
    let mut recorder = Recorder::of(&trace, &["--no-kernel", "--pid", &pids]);
    recorder.wait(honest.pid, 1);
    honest.order("emit 100");
    let said = recorder.stop();
    assert_eq!(count(&trace, "resident:step"), 100, "{way}: {said}");
    assert!(said.contains("\"lost_events\":0"), "{way}: {said}");
    assert!(said.contains("\"state\":\"complete\""), "{way}: {said}");
    honest.end();
    let said = said.replace(&hostile.pid.to_string(), "PID");
    if way != "endless" {
        hostile.end();
    }
    said
}

/// Each way, and what is said of it: either, where the recording may last longer than the recorder waits.
const WAYS: [(&str, &str); 20] = [
    ("least", "it has opened no connection"),
    ("number", "it has opened no connection"),
    ("error", "it has opened no connection (Too many open files"),
    ("failed", "it has opened no connection (Too many open files"),
    ("opening", "process PID did not finish the call in time|it has opened no connection"),
    ("nonsensical", "it has opened no connection"),
    ("closed", "it has opened no connection"),
    ("file", "it has opened no connection"),
    ("stream", "it has opened no connection"),
    ("foreign", "it has opened no connection"),
    ("endless", "process PID did not finish the call in time"),
    ("late", "process PID did not finish the call in time"),
    ("silent", "it has not joined"),
    ("hang_up", "it has not joined"),
    ("huge", "it has not joined"),
    ("nonsense", "it has not joined"),
    ("files", "it has not joined"),
    ("flood", ""),
    ("huge_hello", ""),
    ("pause", ""),
];

#[test]
fn a_hostile_process_harms_no_other() {
    // The recorder's own user may pause it.
    for (way, words) in WAYS.into_iter().filter(|(way, _)| *way != "pause") {
        let said = with_honest_program(way, 0);
        assert!(words.split('|').any(|words| said.contains(words)), "{way}: {said}");
    }
}

#[test]
fn a_hostile_process_of_another_user_harms_no_other() {
    if !am_root() {
        return;
    }
    for (way, words) in WAYS {
        let said = with_honest_program(way, NOBODY);
        assert!(words.split('|').any(|words| said.contains(words)), "{way}: {said}");
    }
}

/// Whether a process is in the call that it does not return from, and its recorder has given it up.
fn is_given_up(pid: u32) -> bool {
    let read = |name| fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap();
    // Before the call its thread waits for input. It is traced until the recorder gives it up.
    let has_begun = !read("syscall").starts_with(&format!("{} ", libc::SYS_read));
    has_begun && read("status").contains("TracerPid:\t0\n")
}

/// There are more of them than places for those of one user, and they are asked before the honest one. A slow
/// machine may give up all of them before it has attached to the honest one: then the same must be seen with
/// more, which keep a recorder busy for longer, but not an honest program.
#[test]
fn many_that_do_not_return_keep_no_other_waiting() {
    let joins = |count| joins_before_the_last_is_given_up(count);
    assert!([40, 80, 160, 320].into_iter().any(joins), "all have had their time before the honest one");
}

/// Records so many that do not return and an honest program; returns whether that has joined before the last
/// of them was given up.
fn joins_before_the_last_is_given_up(count_of_hostile: usize) -> bool {
    let user = if am_root() { NOBODY } else { 0 };
    let folder = tempfile::tempdir().unwrap();
    let silent: Vec<Hostile> = (0..count_of_hostile).map(|_| Hostile::start("endless", user)).collect();
    let mut honest = Resident::start();
    let trace = folder.path().join("t");
    let pids: Vec<u32> = silent.iter().map(|one| one.pid).chain([honest.pid]).collect();
    let pids = pids.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    let mut recorder = Recorder::of(&trace, &["--no-kernel", "--pid", &pids]);
    recorder.wait_for_agents(honest.pid, 1);
    let is_before_the_last = silent.iter().any(|one| !is_given_up(one.pid));
    recorder.wait(honest.pid, 1);
    honest.order("emit 100");
    let said = recorder.stop();
    assert_eq!(count(&trace, "resident:step"), 100, "{said}");
    honest.end();
    is_before_the_last
}

/// A door, a connection and buffers have no names: other users would have to take them from one of the two
/// processes.
#[test]
fn other_users_reach_neither_doors_nor_buffers() {
    if !am_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut program = Resident::start();
    let recorder = Recorder::start(&folder.path().join("t"), program.pid, &[], 1);
    let pids = [program.pid, recorder.pid().parse().unwrap()];
    for user in [STRANGER, NOBODY] {
        let attack = move || {
            become_user(user);
            pids.into_iter().filter(|pid| is_reached(*pid)).collect::<Vec<_>>()
        };
        assert_eq!(std::thread::spawn(attack).join().unwrap(), Vec::<u32>::new(), "user {user}");
    }
    program.order("emit 5");
    let trace = recorder.trace().to_owned();
    recorder.stop();
    assert_eq!(count(&trace, "resident:step"), 5);
    program.end();
}

/// Whether the calling thread's user gets anything of a process.
fn is_reached(pid: u32) -> bool {
    let is_listed =
        ["fd", "map_files"].into_iter().any(|name| fs::read_dir(format!("/proc/{pid}/{name}")).is_ok());
    let is_read = ["mem", "maps", "environ", "syscall"].into_iter().any(|name| {
        let read = |file: fs::File| std::io::Read::read(&mut &file, &mut [0]).is_ok_and(|len| len > 0);
        fs::File::open(format!("/proc/{pid}/{name}")).is_ok_and(read)
    });
    let is_opened = (0..1200).any(|number| fs::File::open(format!("/proc/{pid}/fd/{number}")).is_ok());
    // SAFETY: system calls with numbers.
    let is_taken = unsafe {
        let pidfd = libc::syscall(libc::SYS_pidfd_open, pid, 0);
        assert!(pidfd >= 0);
        let is_copied = (0..1200).any(|number| libc::syscall(libc::SYS_pidfd_getfd, pidfd, number, 0) >= 0);
        let is_traced = libc::ptrace(libc::PTRACE_SEIZE, pid, 0_usize, 0_usize) >= 0;
        let is_signalled = libc::kill(pid.cast_signed(), libc::SIGSTOP) == 0;
        libc::close(pidfd as i32);
        is_copied || is_traced || is_signalled
    };
    is_listed || is_read || is_opened || is_taken
}
