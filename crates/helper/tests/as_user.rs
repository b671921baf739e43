//! Processes that do one thing as another user: what they may do, what they have, and when they end.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Seek};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::process::{Pid as KernelPid, Signal, kill_process};
use tracewing_helper::{AsUsers, Limits, NoReply, User};
use tracewing_testing::{Cause, NOBODY, STRANGER, am_root, skip, wait_until};
use tracewing_units::Pid;

const LIMITS: Limits = Limits { time: Duration::from_secs(30), memory: 64 << 20 };
const OTHER: User = User { uid: NOBODY, gid: STRANGER };

fn start(limits: Limits, work: impl Fn(&[u8], Vec<OwnedFd>) -> Vec<u8>) -> Option<AsUsers> {
    if !am_root() {
        skip(Cause::Root, "only root becomes another user");
        return None;
    }
    Some(AsUsers::start([c"starts", c"works"], limits, work).unwrap())
}

/// What each process does here, by the bytes of its request.
fn work(bytes: &[u8], files: Vec<OwnedFd>) -> Vec<u8> {
    match bytes {
        b"status" => fs::read("/proc/self/status").unwrap(),
        b"files" => {
            let links = (0..10).filter_map(|number| fs::read_link(format!("/proc/self/fd/{number}")).ok());
            format!("{} {}", links.count(), files.len()).into_bytes()
        }
        b"read" => {
            let mut text = Vec::new();
            File::from(files.into_iter().next().unwrap()).read_to_end(&mut text).unwrap();
            text
        }
        b"open" => vec![File::open("/etc/shadow").is_ok().into()],
        b"memory" => vec![std::hint::black_box(vec![7_u8; 128 << 20])[9]],
        b"spin" => loop {
            std::hint::black_box(());
        },
        b"wait" => loop {
            std::thread::sleep(Duration::from_secs(1000));
        },
        b"panic" => panic!("as it should"),
        b"exit" => std::process::exit(0),
        b"too much" => vec![0; 1 << 20],
        other => other.to_vec(),
    }
}

fn field<'s>(status: &'s str, name: &str) -> &'s str {
    status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap().trim()
}

/// Living processes of that name, with their parents.
fn named(name: &str) -> BTreeMap<Pid, Pid> {
    let pids =
        fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid: i32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let lives = field(&status, "Name") == name && !field(&status, "State").starts_with('Z');
        lives.then(|| (Pid(pid), Pid(field(&status, "PPid").parse().unwrap())))
    })
    .collect()
}

#[test]
fn it_has_the_rights_of_its_user_and_no_others() {
    let Some(users) = start(LIMITS, work) else { return };
    for user in [OTHER, User { uid: STRANGER, gid: NOBODY }, User { uid: 0, gid: 0 }] {
        let status = String::from_utf8(users.ask(user, b"status", &[]).unwrap()).unwrap();
        let all = |id: u32| [id; 4].map(|id| id.to_string()).join("\t");
        assert_eq!((field(&status, "Uid"), field(&status, "Gid")), (&*all(user.uid), &*all(user.gid)));
        assert_eq!(field(&status, "Groups"), "");
        for set in ["CapPrm", "CapEff", "CapInh", "CapAmb"] {
            assert_eq!(field(&status, set), "0000000000000000", "{set}");
        }
        assert_eq!((field(&status, "NoNewPrivs"), field(&status, "Name")), ("1", "works"));
    }
    assert_eq!(users.ask(OTHER, b"open", &[]).unwrap(), [0]);
    for wrong in [User { uid: u32::MAX, gid: 1 }, User { uid: 1, gid: u32::MAX }] {
        assert!(matches!(users.ask(wrong, b"status", &[]), Err(NoReply::Start(_))), "{wrong:?}");
    }
}

#[test]
fn it_has_the_descriptors_of_its_request_and_no_others() {
    let Some(users) = start(LIMITS, work) else { return };
    let mut file = tempfile::tempfile().unwrap();
    std::io::Write::write_all(&mut file, b"only the owner opens it").unwrap();
    file.rewind().unwrap();
    assert_eq!(users.ask(OTHER, b"read", &[file.as_fd()]).unwrap(), b"only the owner opens it");
    // Standard ones, its channel, and the two.
    let said = users.ask(User { uid: 0, gid: 0 }, b"files", &[file.as_fd(), file.as_fd()]).unwrap();
    assert_eq!(String::from_utf8(said).unwrap(), "6 2");
    assert_eq!(users.ask(OTHER, b"more", &[]).unwrap(), b"more");
}

#[test]
fn one_that_fails_or_sends_nonsense_concerns_no_other() {
    let Some(users) = start(LIMITS, work) else { return };
    for way in ["panic", "exit", "memory", "too much"] {
        let reply = users.ask(OTHER, way.as_bytes(), &[]);
        assert!(matches!(reply, Err(NoReply::Failed)), "{way}: {reply:?}");
        assert_eq!(users.ask(OTHER, b"more", &[]).unwrap(), b"more");
    }
    wait_until("all are reaped", || !named("works").values().any(|parent| *parent == users.pid()));
}

#[test]
fn one_that_is_late_is_killed_and_keeps_no_other_waiting() {
    let limits = Limits { time: Duration::from_millis(300), ..LIMITS };
    let Some(users) = start(limits, work) else { return };
    for way in ["spin", "wait"] {
        std::thread::scope(|scope| {
            let late = scope.spawn(|| users.ask(OTHER, way.as_bytes(), &[]));
            assert!(users.ask(OTHER, b"more", &[]).is_ok());
            assert!(matches!(late.join().unwrap(), Err(NoReply::Late)), "{way}");
        });
        wait_until("it is killed", || !named("works").values().any(|parent| *parent == users.pid()));
    }
}

#[test]
fn all_end_with_their_owner() {
    let Some(users) = start(LIMITS, work) else { return };
    let starter = users.pid();
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| users.ask(OTHER, b"wait", &[]));
        let mut at_work = BTreeMap::new();
        wait_until("it is at work", || {
            at_work = named("works");
            at_work.retain(|_, parent| *parent == starter);
            !at_work.is_empty()
        });
        kill_process(KernelPid::from_raw(starter.0).unwrap(), Signal::KILL).unwrap();
        // The kernel's signal needs the right to send one to another user.
        wait_until("it has ended", || !at_work.keys().any(|pid| named("works").contains_key(pid)));
        // The starter may have been killed before it has said that it has started it.
        assert!(matches!(asked.join().unwrap(), Err(NoReply::Failed | NoReply::Start(_))));
    });
    assert!(matches!(users.ask(OTHER, b"more", &[]), Err(NoReply::Start(_))));
}
