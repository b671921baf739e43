//! Helper processes: what they may do, what they have, and when they end.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

use rustix::process::{Pid as KernelPid, Signal, kill_process};
use tracewing_helper::{CapabilitySet, Fields, Helper, MOST_BYTES, Reply, Request, Server};
use tracewing_testing::{Cause, am_root, skip, wait_until};
use tracewing_units::Pid;

const PATIENCE: Duration = Duration::from_secs(30);

/// Answers with what it was sent, descriptors included; `wrong` is a request that it does not accept.
fn echo(server: Server) {
    server.answer_each(|request| {
        (request.bytes != b"wrong").then_some(Reply { bytes: request.bytes, files: request.files })
    });
}

fn status(pid: Pid, key: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let value = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
    Some(value.unwrap_or_else(|| panic!("{key}")).trim().to_owned())
}

fn exists(pid: Pid) -> bool {
    fs::exists(format!("/proc/{pid}")).unwrap()
}

fn kill(pid: Pid, signal: Signal) {
    kill_process(KernelPid::from_raw(pid.0).unwrap(), signal).unwrap();
}

/// Sockets of this process, which other tests may make at the same time as well.
fn number_of(files: &[OwnedFd]) -> BTreeSet<i32> {
    files.iter().map(AsRawFd::as_raw_fd).collect()
}

#[test]
fn requests_are_answered_with_their_descriptors() {
    let helper = Helper::start(c"echo", CapabilitySet::empty(), echo).unwrap();
    assert_eq!(helper.ask(b"hello", PATIENCE).unwrap().bytes, b"hello");
    let large = vec![7; MOST_BYTES];
    assert_eq!(helper.ask(&large, PATIENCE).unwrap().bytes, large);
    assert!(helper.ask(&vec![7; MOST_BYTES + 1], PATIENCE).is_err());
    let null = fs::File::open("/dev/null").unwrap();
    let number = helper.begin(b"file", &[null.as_fd(), null.as_fd()]).unwrap();
    let reply = helper.wait(number, PATIENCE).unwrap();
    assert_eq!(number_of(&reply.files).len(), 2);
    assert!(reply.files.iter().all(|file| rustix::io::fcntl_getfd(file).unwrap().bits() == 1), "as CLOEXEC");
}

#[test]
fn several_requests_are_in_flight() {
    // Answers from threads of its own, the later ones of four requests before the earlier ones.
    let helper = Helper::start(c"threads", CapabilitySet::empty(), |server| {
        while let Some(request) = server.next() {
            let replier = server.replier();
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_micros(300 * (4 - request.number % 4)));
                replier.reply(request.number, &Reply::new(request.bytes)).unwrap();
            });
        }
    })
    .unwrap();
    let ask = |number: u64| {
        let reply = helper.ask(&number.to_ne_bytes(), PATIENCE).unwrap();
        assert_eq!(Fields::of(&reply.bytes).u64(), Some(number));
    };
    std::thread::scope(|scope| {
        for thread in 0..8 {
            scope.spawn(move || (0..100).for_each(|round| ask(thread * 1000 + round)));
        }
    });
    let numbers = [helper.begin(b"one", &[]).unwrap(), helper.begin(b"two", &[]).unwrap()];
    let replies = [(); 2].map(|()| helper.next(PATIENCE).unwrap().unwrap());
    let replies: BTreeSet<_> = replies.into_iter().map(|(number, reply)| (number, reply.bytes)).collect();
    assert_eq!(replies, [(numbers[0], b"one".to_vec()), (numbers[1], b"two".to_vec())].into());
    assert!(helper.next(Duration::ZERO).unwrap().is_none());
}

#[test]
fn a_reply_that_is_late_is_dropped() {
    // It answers with the next request.
    let helper = Helper::start(c"late", CapabilitySet::empty(), |server| {
        while let (Some(first), Some(second)) = (server.next(), server.next()) {
            for request in [first, second] {
                server.replier().reply(request.number, &Reply::new(request.bytes)).unwrap();
            }
        }
    })
    .unwrap();
    assert_eq!(helper.ask(b"one", Duration::from_millis(1)).unwrap_err().kind(), ErrorKind::TimedOut);
    assert_eq!(helper.ask(b"two", PATIENCE).unwrap().bytes, b"two");
    assert!(!helper.is_lost());
}

#[test]
fn a_helper_has_the_given_capabilities_and_no_others() {
    if !am_root() {
        return skip(Cause::Root, "capabilities can only be given up by a process that has some");
    }
    let own: u64 =
        u64::from_str_radix(&status(Pid::from_unsigned(std::process::id()), "CapPrm").unwrap(), 16).unwrap();
    for kept in [CapabilitySet::empty(), CapabilitySet::SYS_PTRACE | CapabilitySet::SYS_NICE] {
        let helper = Helper::start(c"rights", kept, echo).unwrap();
        let set = |key| u64::from_str_radix(&status(helper.pid(), key).unwrap(), 16).unwrap();
        for key in ["CapPrm", "CapEff", "CapBnd"] {
            assert_eq!(set(key), kept.bits() & own, "{key}");
        }
        assert_eq!((set("CapInh"), set("CapAmb")), (0, 0));
        assert_eq!(status(helper.pid(), "NoNewPrivs").unwrap(), "1");
        assert_eq!(status(helper.pid(), "Name").unwrap(), "rights");
    }
}

#[test]
fn a_helper_that_executes_programs_has_the_rights_of_its_recorder() {
    let helper = Helper::start_with_all_rights(c"rights", echo).unwrap();
    let own = Pid::from_unsigned(std::process::id());
    for key in ["CapPrm", "CapEff", "CapBnd", "CapInh", "CapAmb", "NoNewPrivs", "Uid", "Gid"] {
        assert_eq!(status(helper.pid(), key), status(own, key), "{key}");
    }
}

#[test]
fn a_request_that_takes_long_keeps_no_other_waiting() {
    let helper = Helper::start(c"hangs", CapabilitySet::empty(), |server| {
        let answer = |request: Request| {
            if request.bytes == b"hang" {
                std::thread::sleep(3 * PATIENCE);
            }
            Some(Reply::new(request.bytes))
        };
        std::thread::scope(|scope| {
            scope.spawn(|| server.answer_each(answer));
            server.answer_each(answer);
        });
    })
    .unwrap();
    let hang = || helper.ask(b"hang", Duration::from_millis(1)).unwrap_err().kind();
    assert_eq!(hang(), ErrorKind::TimedOut);
    assert_eq!(helper.ask(b"hello", PATIENCE).unwrap().bytes, b"hello");
    assert!(!helper.is_lost());
    // Where none is answered any more, it is of no use, and is ended.
    while helper.begin(b"hang", &[]).is_ok_and(|number| helper.wait(number, Duration::ZERO).is_err()) {}
    assert_eq!(helper.ask(b"hello", PATIENCE).unwrap_err().kind(), ErrorKind::BrokenPipe);
    assert!(helper.is_lost() && !exists(helper.pid()));
}

#[test]
fn the_end_is_seen_without_a_request() {
    let helper = Helper::start(c"seen", CapabilitySet::empty(), echo).unwrap();
    assert!(!helper.is_lost());
    kill(helper.pid(), Signal::KILL);
    wait_until("it has ended", || helper.is_lost());
    assert!(!exists(helper.pid()));
    let helper = Helper::start(c"ended", CapabilitySet::empty(), echo).unwrap();
    helper.end();
    assert!(helper.is_lost() && !exists(helper.pid()));
    assert_eq!(helper.ask(b"hello", PATIENCE).unwrap_err().kind(), ErrorKind::BrokenPipe);
}

/// Also of other helpers: a copy of the recorder's end would keep them from seeing its end.
#[test]
fn a_helper_has_no_descriptors_but_its_own() {
    let other = Helper::start(c"other", CapabilitySet::empty(), echo).unwrap();
    let _file = fs::File::open("/proc/self/status").unwrap();
    let helper = Helper::start(c"files", CapabilitySet::empty(), echo).unwrap();
    for pid in [other.pid(), helper.pid()] {
        let target = |number: i32| fs::read_link(format!("/proc/{pid}/fd/{number}")).unwrap();
        let files = fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
        let files =
            files.map(|entry| entry.unwrap().file_name().into_string().unwrap().parse::<i32>().unwrap());
        assert_eq!(files.collect::<BTreeSet<_>>(), [0, 1, 2, 3].into());
        assert!((0..3).all(|number| target(number) == std::path::Path::new("/dev/null")));
        assert!(target(3).to_str().unwrap().starts_with("socket:"));
    }
}

#[test]
fn a_helper_ends_with_its_value_and_leaves_no_zombie() {
    let helper = Helper::start(c"end", CapabilitySet::empty(), echo).unwrap();
    let pid = helper.pid();
    assert!(exists(pid));
    drop(helper);
    assert!(!exists(pid));
}

#[test]
fn a_helper_that_does_not_end_is_killed() {
    let helper = Helper::start(c"stay", CapabilitySet::empty(), |_server| {
        loop {
            std::thread::sleep(PATIENCE);
        }
    })
    .unwrap();
    let pid = helper.pid();
    drop(helper);
    assert!(!exists(pid));
}

#[test]
fn signals_of_the_terminal_do_not_end_a_helper() {
    let helper = Helper::start(c"signals", CapabilitySet::empty(), echo).unwrap();
    for signal in [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT] {
        kill(helper.pid(), signal);
    }
    assert_eq!(helper.ask(b"hello", PATIENCE).unwrap().bytes, b"hello");
}

#[test]
fn a_killed_helper_is_lost_and_leaves_no_zombie() {
    let helper = Helper::start(c"killed", CapabilitySet::empty(), |server| {
        server.answer_each(|request| {
            (request.bytes == b"none").then(|| {
                loop {
                    std::thread::sleep(PATIENCE);
                }
            })
        });
    })
    .unwrap();
    let number = helper.begin(b"none", &[]).unwrap();
    kill(helper.pid(), Signal::KILL);
    assert_eq!(helper.wait(number, PATIENCE).unwrap_err().kind(), ErrorKind::BrokenPipe);
    assert!(helper.is_lost() && !exists(helper.pid()));
    assert_eq!(helper.ask(b"more", PATIENCE).unwrap_err().kind(), ErrorKind::BrokenPipe);
    assert_eq!(helper.next(PATIENCE).unwrap_err().kind(), ErrorKind::BrokenPipe);
}

#[test]
fn a_wrong_request_ends_the_helper() {
    let helper = Helper::start(c"wrong", CapabilitySet::empty(), echo).unwrap();
    assert_eq!(helper.ask(b"wrong", PATIENCE).unwrap_err().kind(), ErrorKind::BrokenPipe);
    assert!(!exists(helper.pid()));
    // Of another layout.
    let helper = Helper::start(c"wrong", CapabilitySet::empty(), echo).unwrap();
    rustix::net::send(&helper, b"nonsense", rustix::net::SendFlags::empty()).unwrap();
    assert_eq!(helper.next(PATIENCE).unwrap_err().kind(), ErrorKind::BrokenPipe);
    assert!(!exists(helper.pid()));
}

#[test]
fn a_wrong_reply_ends_the_helper() {
    // Two replies to one request, and a reply to none.
    for wrong in [0, 7] {
        let helper = Helper::start(c"wrong", CapabilitySet::empty(), move |server| {
            while let Some(request) = server.next() {
                server.replier().reply(request.number + wrong, &Reply::new(b"one")).unwrap();
                let _ = server.replier().reply(request.number + wrong, &Reply::new(b"two"));
            }
        })
        .unwrap();
        let first = helper.ask(b"", PATIENCE);
        assert_eq!(first.is_ok(), wrong == 0);
        assert_eq!(helper.next(PATIENCE).unwrap_err().kind(), ErrorKind::BrokenPipe);
        assert!(helper.is_lost() && !exists(helper.pid()));
    }
}

/// The recorder is a process of its own, which says which helper it has started.
#[test]
fn a_helper_ends_with_its_recorder() {
    let (pipe, write) = rustix::pipe::pipe().unwrap();
    // SAFETY: the child uses the C library's memory, which `fork` leaves usable, and ends without unwinding.
    let recorder = unsafe { libc::fork() };
    if recorder == 0 {
        // It neither reads from its channel nor looks for the end of its parent.
        let helper = Helper::start(c"orphan", CapabilitySet::empty(), |_server| {
            loop {
                std::thread::sleep(PATIENCE);
            }
        });
        let pid = helper.as_ref().map_or(0, |helper| helper.pid().0);
        let _ = rustix::io::write(&write, &pid.to_ne_bytes());
        loop {
            std::thread::sleep(PATIENCE);
        }
    }
    drop(write);
    let mut pid = [0; 4];
    assert_eq!(rustix::io::read(&pipe, &mut pid).unwrap(), 4);
    let helper = Pid(i32::from_ne_bytes(pid));
    assert!(exists(helper));
    kill(Pid(recorder), Signal::KILL);
    // SAFETY: waits for the child just made; no status is asked for.
    assert_eq!(unsafe { libc::waitpid(recorder, std::ptr::null_mut(), 0) }, recorder);
    // What is left of it, if anything, is reaped by the parent that it got.
    let is_gone = || status(helper, "State").is_none_or(|state| state.starts_with('Z'));
    wait_until("it has ended", is_gone);
}

#[test]
fn no_descriptors_are_left() {
    // In a process that makes no others at the same time.
    // SAFETY: as above.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let result = std::panic::catch_unwind(|| {
            let count = || fs::read_dir("/proc/self/fd").unwrap().count();
            let before = count();
            for way in 0..4 {
                let helper = Helper::start(c"count", CapabilitySet::empty(), echo).unwrap();
                let null = fs::File::open("/dev/null").unwrap();
                match way {
                    0 => {}
                    1 => kill(helper.pid(), Signal::KILL),
                    2 => drop(helper.ask(b"wrong", PATIENCE)),
                    _ => drop(helper.begin(b"not waited for", &[null.as_fd()]).unwrap()),
                }
            }
            assert_eq!(count(), before);
        });
        // SAFETY: ends the child.
        unsafe { libc::_exit(i32::from(result.is_err())) };
    }
    let mut status = -1;
    // SAFETY: the child just made.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0);
}
