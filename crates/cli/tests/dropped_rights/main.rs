//! Processes that drop their rights, without `exec` and by raw system calls, and then write over everything
//! that they still have mapped: of other programs, and of their parents and siblings, every event is read, in
//! order, and the damage is reported.
//!
//! The programs are this test itself, started again with a variable set.

#[path = "../harness/mod.rs"]
mod harness;
#[path = "../recorded/mod.rs"]
mod recorded;
mod rights;

use harness::Printed;
use rights::*;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use recorded::{Recording, ended, recorder};
use tracewing::{Event, emit};

const ROLE: &str = "TRACEWING_TEST_RIGHTS";

/// Writes the inodes of what it has mapped here.
const INODES: &str = "TRACEWING_TEST_RIGHTS_INODES";

const USER: u32 = 54_321;

/// What drops the rights: the program itself, or a child of it, of which it is the victim.
const TASKS: [&str; 4] = ["itself", "fork", "_Fork", "clone"];

/// Events of a victim, and of a child of it that runs at the same time: half of them before the damage.
const OF_VICTIM: u64 = 200;

const VICTIM: u32 = 1000;

const SIBLING: u32 = 2000;

/// The program that forks much: its children, and the events of each.
const CHILDREN: u32 = 500;

const OF_CHILD: u64 = 10;

#[derive(Event)]
#[event(provider = "rights")]
struct Numbered {
    emitter: u32,
    number: u64,
}

/// The program, in all its roles.
#[test]
fn program() {
    match std::env::var(ROLE).ok().as_deref() {
        None => {}
        Some("bystander") => {
            note_inodes("bystander");
            (0..20_000).for_each(|number| emit!(Numbered { emitter: 2, number }));
            std::thread::sleep(Duration::from_millis(300));
            (20_000..40_000).for_each(|number| emit!(Numbered { emitter: 2, number }));
        }
        Some("driver") => drive(),
        Some("forks") => fork_much(),
        Some(role) => {
            let [how, task, number] = role.split('-').collect::<Vec<_>>()[..] else { panic!("{role}") };
            note_inodes(role);
            play(how, task, number.parse().unwrap());
            // SAFETY: nothing of this process is to run any more.
            unsafe { libc::_exit(0) };
        }
    }
}

/// Runs the others one after another, with a bystander at the same time; emits as long as they run.
fn drive() {
    note_inodes("driver");
    let is_over = AtomicBool::new(false);
    let start = |role: &str| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["program", "--exact", "--test-threads", "1"]).env(ROLE, role);
        command.stdout(std::process::Stdio::null());
        command
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut number = 0;
            while !is_over.load(Ordering::Relaxed) {
                for _ in 0..100 {
                    emit!(Numbered { emitter: 1, number });
                    number += 1;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            fs::write("driver.count", number.to_string()).unwrap();
        });
        let mut bystander = start("bystander").spawn().unwrap();
        // SAFETY: a number.
        let is_root = unsafe { libc::geteuid() } == 0;
        let ways = BY_ROOT.iter().filter(|_| is_root).chain(&BY_ALL);
        let ways = ways.flat_map(|how| TASKS.map(|task| format!("{how}-{task}")));
        let ways = ways.enumerate().map(|(number, way)| format!("{way}-{number}"));
        let failed: Vec<String> = ways.filter(|way| !start(way).status().unwrap().success()).collect();
        let bystander = bystander.wait().unwrap();
        is_over.store(true, Ordering::Relaxed);
        assert!(failed.is_empty() && bystander.success(), "{failed:?}, {bystander}");
    });
}

/// Forks children, several at a time, that end as soon as they have emitted.
fn fork_much() {
    for batch in 0..CHILDREN / 5 {
        let fork = |child| {
            // SAFETY: the child emits and ends.
            let pid = unsafe { libc::fork() };
            if pid == 0 {
                (0..OF_CHILD).for_each(|number| emit!(Numbered { emitter: 5 * batch + child, number }));
                // SAFETY: as above.
                unsafe { libc::_exit(0) };
            }
            emit!(Numbered { emitter: VICTIM, number: u64::from(5 * batch + child) });
            pid
        };
        (0..5).map(fork).collect::<Vec<_>>().into_iter().for_each(wait_for);
    }
}

fn note_inodes(role: &str) {
    let Some(folder) = std::env::var_os(INODES) else { return };
    let inodes: Vec<String> = mappings().iter().map(|(_, _, inode)| inode.to_string()).collect();
    assert!(!inodes.is_empty(), "{role} is not recorded");
    fs::write(Path::new(&folder).join(role), inodes.join("\n")).unwrap();
}

unsafe extern "C" {
    #[link_name = "_Fork"]
    fn plain_fork() -> libc::pid_t;
}

/// A victim, in whose child, or in which itself, rights are dropped.
fn play(how: &str, task: &str, number: u32) {
    let emit_half = |emitter, half: u64| {
        let begin = half * OF_VICTIM / 2;
        (begin..begin + OF_VICTIM / 2).for_each(|number| emit!(Numbered { emitter, number }));
    };
    emit_half(VICTIM + number, 0);
    if task == "itself" {
        scribble(how);
        return;
    }
    let (mut end, begin) = std::io::pipe().unwrap();
    // SAFETY: the child emits, waits and ends.
    let sibling = unsafe { libc::fork() };
    if sibling == 0 {
        drop(begin);
        emit_half(SIBLING + number, 0);
        let _ = std::io::Read::read(&mut end, &mut [0]);
        emit_half(SIBLING + number, 1);
        // SAFETY: ends the child.
        unsafe { libc::_exit(0) };
    }
    let mapped = mappings();
    // Children that have no buffers can write where they count what they lose, and nowhere else; others to
    // what the parent had for them.
    let is_childs = if task == "fork" { "tracewing-child" } else { "tracewing-children " };
    let child = match task {
        // SAFETY: the child makes system calls and writes to memory.
        "fork" => unsafe { libc::fork() },
        // SAFETY: as above.
        "_Fork" => unsafe { plain_fork() },
        // SAFETY: as above.
        _ => unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) as i32 },
    };
    if child == 0 {
        let childs = mappings_with(is_childs);
        let is_parents = |one: &(usize, usize, u64)| mapped.contains(one) && !childs.contains(one);
        let has_parents = mappings().iter().any(is_parents);
        let dropped = scribble(how);
        // SAFETY: nothing of this process is to run any more.
        unsafe { libc::_exit(i32::from(!dropped) + 2 * i32::from(has_parents)) };
    }
    wait_for(child);
    emit_half(VICTIM + number, 1);
    drop(begin);
    wait_for(sibling);
}

/// Records a role, as this user.
fn record(role: &str, user: Option<u32>, options: &[&str]) -> Recording {
    let folder = tempfile::tempdir().unwrap();
    let inodes = folder.path().join("inodes");
    fs::create_dir(&inodes).unwrap();
    let mut command = recorder(folder.path(), options);
    if let Some(user) = user {
        for path in [folder.path(), &inodes] {
            std::os::unix::fs::chown(path, Some(user), Some(user)).unwrap();
        }
        command.uid(user).gid(user).env("XDG_RUNTIME_DIR", folder.path());
    }
    command.env(ROLE, role).env(INODES, &inodes);
    command.arg(std::env::current_exe().unwrap()).args(["program", "--exact", "--test-threads", "1"]);
    let recorder = command.spawn().unwrap();
    ended(folder, recorder)
}

/// The inodes that each role has mapped.
fn inodes(recording: &Recording) -> BTreeMap<String, Vec<u64>> {
    let entries = fs::read_dir(recording.folder.path().join("inodes")).unwrap().flatten();
    let read = |path| fs::read_to_string(path).unwrap().lines().map(|line| line.parse().unwrap()).collect();
    entries.map(|entry| (entry.file_name().into_string().unwrap(), read(entry.path()))).collect()
}

/// The numbers of each, in their order.
fn numbers(recording: &Recording) -> BTreeMap<u64, Vec<u64>> {
    let mut numbers: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for event in recorded::list(&recording.trace()).iter().filter(|event| event.name == "rights:numbered") {
        let (emitter, number) = (event.payload["emitter"].as_u64(), event.payload["number"].as_u64());
        numbers.entry(emitter.unwrap()).or_default().push(number.unwrap());
    }
    numbers
}

fn check(user: Option<u32>, options: &[&str]) {
    let recording = record("driver", user, options);
    let mapped = inodes(&recording);
    let mut all: Vec<u64> = mapped.values().flatten().copied().collect();
    all.sort_unstable();
    assert!(all.len() >= 2 + BY_ALL.len() * TASKS.len());
    assert!(all.windows(2).all(|two| two[0] != two[1]), "a region of two programs: {mapped:?}");

    let mut numbers = numbers(&recording);
    let count: u64 =
        fs::read_to_string(recording.folder.path().join("driver.count")).unwrap().parse().unwrap();
    let by_root = if user.is_none() && tracewing_testing::am_root() { BY_ROOT.len() } else { 0 };
    let victims = (0..(by_root + BY_ALL.len()) * TASKS.len()).filter(|number| number % TASKS.len() != 0);
    let victims = victims
        .flat_map(|number| [VICTIM, SIBLING].map(|emitter| (u64::from(emitter) + number as u64, OF_VICTIM)));
    for (emitter, count) in [(1, count), (2, 40_000)].into_iter().chain(victims) {
        let found = numbers.remove(&emitter).unwrap_or_default();
        assert_eq!(found.len() as u64, count, "events of {emitter}");
        assert!(found.into_iter().eq(0..count), "events of {emitter}, in order");
    }
    // What was lost is of those that have damaged their own buffers.
    let reasons = recording.reasons();
    assert!(reasons.keys().all(|reason| *reason == "buffer damaged"), "{reasons:?}");
    let notes = recording.summary["notes"].as_array().unwrap();
    assert!(notes.iter().any(|note| note.to_string().contains("of a buffer")), "{notes:?}");
    // The files of the damaged ones are as readable as the others'.
    if let Ok(peer) = Command::new("babeltrace2").arg(recording.trace().join("user")).output() {
        let warnings = peer.notes();
        let other = warnings.lines().find(|line| !line.contains("WARNING: Tracer discarded"));
        assert!(peer.status.success() && other.is_none(), "{other:?}");
    }
}

#[test]
fn other_programs_events_are_safe_from_a_process_that_has_dropped_its_rights() {
    check(None, &[]);
}

#[test]
fn other_programs_events_are_safe_for_users_without_rights_too() {
    if !tracewing_testing::am_root() {
        return tracewing_testing::skip(tracewing_testing::Cause::Root, "another user needs root");
    }
    check(Some(USER), &[]);
}

#[test]
fn root_shares_with_no_other_program_whatever_it_asks_for() {
    if !tracewing_testing::am_root() {
        return tracewing_testing::skip(tracewing_testing::Cause::Root, "needs root");
    }
    for options in [["--buffers", "user"], ["--buffers", "program"]] {
        check(None, &options);
    }
}

/// Nothing waits: a child has the buffers that its parent had for it, or loses what it emits until it gets
/// some.
#[test]
fn many_forked_children_have_every_event_or_count_it_lost() {
    for options in [&[][..], &["--clock", "mono"]] {
        let recording = record("forks", None, options);
        let mut numbers = numbers(&recording);
        let of_parent = numbers.remove(&u64::from(VICTIM)).unwrap();
        assert!(of_parent.into_iter().eq(0..u64::from(CHILDREN)));
        let mut lost = 0;
        for emitter in 0..CHILDREN {
            let found = numbers.remove(&u64::from(emitter)).unwrap_or_default();
            // The first ones are lost, if any.
            assert!(
                found.iter().copied().eq(OF_CHILD - found.len() as u64..OF_CHILD),
                "{emitter}: {found:?}"
            );
            lost += OF_CHILD - found.len() as u64;
        }
        eprintln!("{options:?}: {lost} of {} lost", u64::from(CHILDREN) * OF_CHILD);
        let reasons = recording.reasons();
        assert_eq!(reasons.values().sum::<u64>(), lost, "{}", recording.summary);
        assert!(reasons.keys().all(|reason| *reason == recorded::UNREADY), "{reasons:?}");
    }
}
