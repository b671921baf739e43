//! Probes: events exactly as often as a function is called, and nothing that stays, however their recorder
//! ends.

mod common;

use common::{Actor, babeltrace, gate, options, role, say, traceable};
use std::ffi::{CStr, c_char};
use std::fs;
use std::hint::black_box;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use tracewing_kernel::{Argument, Error, Options, POLL_INTERVAL, Probe, Scope, Tracefs};

const CALLS: u64 = 1234;
const WORD: &CStr = c"a word";

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn probed_by_the_tests(number: u64, word: *const c_char) -> u64 {
    black_box((number + 1, word)).0
}

/// Where in the file of this test the function is.
fn offset() -> u64 {
    let address = probed_by_the_tests as *const () as u64;
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let offset = maps.lines().find_map(|line| {
        let mut words = line.split(' ');
        let (start, end) = words.next()?.split_once('-')?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        let (start, end, offset) = (number(start)?, number(end)?, number(words.nth(1)?)?);
        (start..end).contains(&address).then(|| address - start + offset)
    });
    offset.unwrap()
}

fn probe(name: &str, at_return: bool, arguments: &[(&str, &str)]) -> Probe {
    let argument =
        |(name, fetch): &(&str, &str)| Argument { name: (*name).to_owned(), fetch: (*fetch).to_owned() };
    Probe {
        name: name.to_owned(),
        file: std::env::current_exe().unwrap(),
        offset: offset(),
        semaphore: None,
        at_return,
        arguments: arguments.iter().map(argument).collect(),
    }
}

fn with_probes(scope: Scope, probes: Vec<Probe>) -> Options {
    Options { probes, only_probes: true, ..options(scope, &[]) }
}

/// Whether the kernel has probes at all; says so if not.
fn probeable() -> bool {
    let file = |tracefs: Tracefs| tracefs.root().join("uprobe_events").exists();
    match traceable() && Tracefs::open().is_ok_and(file) {
        true => true,
        false => {
            tracewing_testing::skip(tracewing_testing::Cause::Uprobes, "no uprobes here");
            false
        }
    }
}

/// The definitions that a recorder has in the tracer.
fn definitions_of(pid: u32) -> Vec<String> {
    let path = Tracefs::open().unwrap().root().join("uprobe_events");
    let text = fs::read_to_string(path).unwrap();
    text.lines().filter(|line| line.contains(&format!(":tracewing_{pid}_"))).map(str::to_owned).collect()
}

/// An actor: calls the function.
#[test]
fn caller() {
    let Some(_) = role("caller") else { return };
    say("tid", rustix::thread::gettid().as_raw_nonzero());
    gate();
    for number in 0..CALLS {
        assert_eq!(probed_by_the_tests(number, WORD.as_ptr()), number + 1);
    }
}

/// An actor: a recorder that records until it is asked to end, or killed.
#[test]
fn recorder() {
    let Some(dir) = role("recorder") else { return };
    let probes = vec![probe("own:function", false, &[]), probe("own:function%return", true, &[])];
    let recorder = common::start_in(&dir, &with_probes(Scope::System, probes)).unwrap();
    say("recording", std::process::id());
    gate();
    recorder.finish().unwrap();
    say("finished", "");
}

#[test]
fn a_probe_is_hit_once_per_call_of_its_function_and_has_the_arguments() {
    if !probeable() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let arguments = [("number", "%di:u64"), ("word", "+0(%si):string"), ("low", "%di:x8"), ("ip", "%di:s32")];
    let probes = vec![
        probe("own:function", false, &arguments),
        probe("own:function%return", true, &[("result", "$retval:s64")]),
    ];
    let mut recorder = common::start_in(dir.path(), &with_probes(Scope::Tree, probes)).unwrap();
    let mut actor = Actor::start("caller", Path::new(""));
    let mut stranger = Actor::start("caller", Path::new(""));
    recorder.set_root_pid(actor.expect("tid").parse().unwrap()).unwrap();
    stranger.expect("tid");
    for one in [&mut actor, &mut stranger] {
        one.go();
    }
    for one in [actor, stranger] {
        assert!(one.wait().success());
    }
    std::thread::sleep(POLL_INTERVAL);
    let summary = recorder.finish().unwrap();
    assert_eq!(summary.streams.iter().map(|stream| stream.events).sum::<u64>(), 2 * CALLS);
    let Some(lines) = babeltrace(dir.path()) else { return };
    let named = |name: &'static str| lines.iter().filter(move |line| line.name == name);
    for (number, line) in named("own:function").enumerate() {
        assert_eq!(line.number("number"), number as i128);
        assert_eq!(line.number("low"), number as i128 & 0xff);
        assert_eq!(line.field("word"), "\"a word\"");
        // The kernel's own field has the name already.
        assert_eq!(line.number("ip_"), number as i128);
    }
    let addresses: Vec<_> = named("own:function").map(|line| line.field("ip")).collect();
    for (number, line) in named("own:function%return").enumerate() {
        assert_eq!(line.number("result"), number as i128 + 1);
        assert_eq!(line.field("func"), addresses[number]);
    }
    assert_eq!((addresses.len(), named("own:function%return").count()), (CALLS as usize, CALLS as usize));
}

#[test]
fn probes_go_with_their_recorder_however_that_ends() {
    if !probeable() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let start = |name: &str| {
        let mut actor = Actor::start("recorder", &dir.path().join(name));
        let pid: u32 = actor.expect("recording").parse().unwrap();
        // The kernel's list skips some while others are removed, by the other tests.
        tracewing_testing::wait_until("they are listed", || definitions_of(pid).len() == 2);
        (actor, pid)
    };
    let (mut living, living_pid) = start("living");
    let (mut killed, killed_pid) = start("killed");
    killed.child.kill().unwrap();
    let status = killed.wait();
    assert_eq!(status.signal(), Some(9));
    let begin = Instant::now();
    while !definitions_of(killed_pid).is_empty() {
        assert!(begin.elapsed() < Duration::from_secs(60), "they stay");
        std::thread::sleep(Duration::from_millis(10));
    }

    // With its guardian: the next recorder removes them.
    let (mut killed, killed_pid) = start("killed-with-guardian");
    assert!(Command::new("pkill").args(["-KILL", "-P", &killed_pid.to_string()]).status().unwrap().success());
    killed.child.kill().unwrap();
    killed.wait();
    let options = options(Scope::System, &["sched_switch"]);
    common::start_in(&dir.path().join("next"), &options).unwrap().finish().unwrap();
    assert_eq!(definitions_of(killed_pid), [""; 0]);

    tracewing_testing::wait_until("a living recorder's are left alone", || {
        definitions_of(living_pid).len() == 2
    });
    living.go();
    living.expect("finished");
    assert_eq!(definitions_of(living_pid), [""; 0]);
    assert!(living.wait().success());
}

#[test]
fn a_refusal_by_the_kernel_is_reported_and_leaves_nothing() {
    if !probeable() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let refused = |probe: Probe| {
        let options = with_probes(Scope::System, vec![probe]);
        let error = common::start_in(&dir.path().join("t"), &options).map(drop).unwrap_err();
        assert!(matches!(error, Error::Probe { .. }), "{error}");
        error.to_string()
    };
    let error = refused(probe("own:function", false, &[("a", "%nothing")]));
    assert!(error.contains("own:function: Invalid argument") && error.contains("register"), "{error}");
    let error = refused(Probe { file: PathBuf::from("/nowhere"), ..probe("n", false, &[]) });
    assert!(error.contains("No such file"), "{error}");
    // Before and after what can be probed.
    let good = probe("good", false, &[]);
    let bad = probe("bad", false, &[("a", "%di:nonsense")]);
    let options = with_probes(Scope::System, vec![good, bad]);
    assert!(common::start_in(&dir.path().join("t"), &options).is_err());
    let own = std::process::id();
    assert!(definitions_of(own).iter().all(|line| !line.contains("nonsense")), "{:?}", definitions_of(own));
}
