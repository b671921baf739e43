//! What recorders of root give up: capabilities that they do not need, and how to get them back. What needs
//! them is done by processes with just these. What a recorder runs has what it would have without one.

use crate::background::{Background, Pilot, as_user};
use crate::harness::Printed;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::path::Path;
use tracewing_testing::{Cause, NOBODY, am_root, skip, traceable, wait_until};

/// Numbers of `linux/capability.h`.
const DAC_OVERRIDE: u32 = 1;
const DAC_READ_SEARCH: u32 = 2;
const SETUID: u32 = 7;
const SYS_MODULE: u32 = 16;
const SYS_PTRACE: u32 = 19;
const SYS_ADMIN: u32 = 21;
const SYS_RESOURCE: u32 = 24;
const SYSLOG: u32 = 34;
const PERFMON: u32 = 38;

/// The value of a line of a file like `/proc/PID/status`.
fn value<'a>(status: &'a str, key: &str) -> &'a str {
    status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':')).unwrap().trim()
}

fn set(status: &str, key: &str) -> u64 {
    u64::from_str_radix(value(status, key), 16).unwrap()
}

/// `status` of each thread of a process.
fn threads(pid: u32) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    tasks.filter_map(|task| fs::read_to_string(task.unwrap().path().join("status")).ok()).collect()
}

fn own() -> String {
    fs::read_to_string("/proc/thread-self/status").unwrap()
}

fn has(set: u64, capability: u32) -> bool {
    set & 1 << capability != 0
}

/// Whether this process has what a recorder has to have so that it gives up the rest.
fn is_usual_root() -> bool {
    let is_usual =
        am_root() && has(set(&own(), "CapEff"), SYS_PTRACE) && has(set(&own(), "CapEff"), SYS_MODULE);
    if !is_usual {
        skip(Cause::Root, "not root with all capabilities");
    }
    is_usual
}

#[test]
fn recorders_of_sessions_have_one_capability_and_attach_to_programs_of_all_users() {
    if !is_usual_root() {
        return;
    }
    let sessions = Background::new();
    sessions.succeeds("session create web -e pilot:*");
    sessions.succeeds("trigger add web hit -e pilot:count --where number==1 --do notify");
    sessions.start("web");
    // Programs of all users are attached to nevertheless.
    let mut pilot = Pilot::run(&sessions, &as_user(NOBODY));
    pilot.emit(10);
    wait_until("it is recorded", || sessions.channel("web", "main")["events"].as_u64() >= Some(10));
    let recorders = sessions.recorders();
    assert_eq!(recorders.len(), 2);
    for pid in recorders {
        let threads = threads(pid);
        let sets: BTreeSet<u64> =
            threads.iter().flat_map(|thread| ["CapPrm", "CapEff"].map(|key| set(thread, key))).collect();
        assert_eq!(sets.len(), 1, "the same of each of its threads: {sets:x?}");
        assert_eq!(sets.first(), Some(&to_send()));
        for thread in &threads {
            assert_eq!(set(thread, "CapBnd"), to_send(), "exec would give it back");
            assert_eq!(value(thread, "NoNewPrivs"), "1");
        }
    }
}

#[test]
fn what_a_recorder_runs_has_what_it_would_have_without_one() {
    if !is_usual_root() {
        return;
    }
    let sessions = Background::new();
    let script = sessions.folder().join("status.sh");
    fs::write(&script, "#!/bin/sh\ncat /proc/self/status > \"$0.$PPID\"\n").unwrap();
    rustix::fs::chmod(&script, rustix::fs::Mode::from_raw_mode(0o755)).unwrap();
    let script = script.to_str().unwrap();
    sessions.succeeds(&format!("session create web -e pilot:* --on-archive {script}"));
    sessions.succeeds(&format!("trigger add web hit -e pilot:count --where number==1 --exec {script}"));
    sessions.start("web");
    let recorders: Vec<u64> = ["main", "hit"]
        .iter()
        .map(|name| sessions.channel("web", name)["recorder"].as_u64().unwrap())
        .collect();
    let mut pilot = Pilot::start(&sessions);
    pilot.emit(10);
    sessions.succeeds("rotate web");
    let said = |recorder: &u64| {
        let (runs, _) = helpers(*recorder as u32)["tracewing-runs"];
        fs::read_to_string(format!("{script}.{runs}")).unwrap_or_default()
    };
    wait_until("both have run", || recorders.iter().all(|recorder| said(recorder).contains("NoNewPrivs")));
    for recorder in &recorders {
        assert_same(&said(recorder));
        let own = set(&threads(*recorder as u32)[0], "CapPrm");
        assert!(!has(own, SETUID), "the recorder itself has less: {own:x}");
    }
    sessions.succeeds("session stop web");
    let recorded = sessions.succeeds("record -q --no-kernel -o t -- cat /proc/self/status").text();
    assert_same(&recorded);
}

/// The session's folder has `..` in its path, and another recording has its name.
#[test]
fn programs_run_for_the_folders_of_the_session() {
    if !is_usual_root() {
        return;
    }
    let sessions = Background::new();
    let script = sessions.folder().join("notes");
    fs::write(&script, "#!/bin/sh\necho \"$1\" >> \"$0.said\"\n").unwrap();
    rustix::fs::chmod(&script, rustix::fs::Mode::from_raw_mode(0o755)).unwrap();
    let script = script.to_str().unwrap();
    sessions.succeeds("session create flight --flight-recorder -o run/../flights");
    sessions.succeeds(&format!("channel add flight plain -e pilot:* --on-archive {script}"));
    let rule = "pilot:count --where number==1 --at-most-every 0.001";
    sessions.succeeds(&format!("trigger add flight hit -e {rule} --do snapshot --exec {script}"));
    let place = sessions.start("flight");
    assert!(place.to_str().unwrap().contains("/../"), "{place:?}");
    let mut other = sessions.command(&[], crate::harness::TRACEWING);
    other.args("record --session flight --flight-recorder --all --no-kernel -q -o other".split(' '));
    let other = Working(other.spawn().unwrap());
    wait_until("it records", || sessions.ran(&format!("snapshot {}", other.0.id())).status.success());

    let said = || fs::read_to_string(format!("{script}.said")).unwrap_or_default();
    for round in 1..=2 {
        let before = said().matches("/main/snapshot-").count();
        Pilot::start(&sessions).emit(10);
        wait_until("a program runs for a snapshot", || said().matches("/main/snapshot-").count() > before);
        sessions.succeeds("rotate flight/plain");
        wait_until("one runs for an archive", || said().matches("/plain/archives/").count() == round);
    }
    sessions.succeeds("session stop flight");
    assert!(said().lines().all(|line| Path::new(line).starts_with(&place)), "{}", said());
    assert!(!sessions.folder().join("other/snapshot-2").exists(), "it is no channel of the session");
    let log = fs::read_to_string(place.join("hit.log")).unwrap();
    assert!(!log.contains("not done"), "{log}");
}

/// A command has the capabilities of this process.
fn assert_same(status: &str) {
    for key in ["CapPrm", "CapEff", "CapBnd", "CapInh", "NoNewPrivs"] {
        assert_eq!(value(status, key), value(&own(), key), "{key}");
    }
}

/// What is kept to send descriptors.
fn to_send() -> u64 {
    let of = |capability: u32| 1 << capability;
    if has(set(&own(), "CapPrm"), SYS_RESOURCE) { of(SYS_RESOURCE) } else { of(SYS_ADMIN) }
}

/// The recorder's own processes, with their names and capabilities.
fn helpers(recorder: u32) -> BTreeMap<String, (u32, u64)> {
    let tasks = fs::read_dir(format!("/proc/{recorder}/task")).unwrap();
    let lists = tasks.map(|task| fs::read_to_string(task.unwrap().path().join("children")).unwrap());
    let all = lists.collect::<Vec<_>>().join(" ");
    let pids = all.split_whitespace().map(|pid| pid.parse().unwrap());
    let about = pids.map(|pid: u32| (pid, fs::read_to_string(format!("/proc/{pid}/status")).unwrap()));
    about.map(|(pid, status)| (value(&status, "Name").to_owned(), (pid, set(&status, "CapPrm")))).collect()
}

fn of(capabilities: &[u32]) -> u64 {
    capabilities.iter().map(|capability| 1 << capability).sum()
}

#[test]
fn a_recorder_has_one_capability_and_its_processes_have_what_they_need() {
    if !is_usual_root() || !traceable(tracewing_kernel::privileges()) {
        return;
    }
    let sessions = Background::new();
    sessions.succeeds("session create web --system-wide -k sched_switch --profile 99");
    sessions.start("web");
    wait_until("it records", || sessions.channel("web", "main")["events"].as_u64() > Some(0));
    let recorder = sessions.recorders()[0];
    for thread in threads(recorder) {
        let all = ["CapPrm", "CapEff", "CapBnd", "CapInh", "CapAmb"].map(|key| set(&thread, key));
        let kept = to_send();
        assert_eq!(all, [kept, kept, kept, 0, 0], "{thread}");
    }
    let helpers = helpers(recorder);
    let rights: BTreeMap<&str, u64> = helpers.iter().map(|(name, (_, set))| (name.as_str(), *set)).collect();
    let expected = [
        ("tracewing-perf", of(&[PERFMON, SYSLOG]) | to_send()),
        ("tracewing-proc", of(&[SYS_PTRACE, DAC_READ_SEARCH]) | to_send()),
        ("tracewing-trace", to_send()),
    ];
    assert_eq!(rights, expected.into());
    sessions.succeeds("session stop web");
    assert!(helpers.values().all(|(pid, _)| !fs::exists(format!("/proc/{pid}")).unwrap()), "{helpers:?}");
}

/// What it leaves is removed by the process that makes its changes.
#[test]
fn a_killed_recorder_leaves_neither_an_instance_nor_a_process() {
    if !is_usual_root() || !traceable(tracewing_kernel::privileges()) {
        return;
    }
    let sessions = Background::new();
    sessions.succeeds("session create web --system-wide -k sched_switch");
    sessions.start("web");
    wait_until("it records", || sessions.channel("web", "main")["events"].as_u64() > Some(0));
    let recorder = sessions.recorders()[0];
    let helpers = helpers(recorder);
    assert_eq!(helpers.len(), 2, "{helpers:?}");
    let instances = || {
        let root = tracewing_kernel::Tracefs::open().unwrap().root().join("instances");
        let names =
            fs::read_dir(root).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.starts_with(&format!("tracewing-{recorder}-"))).count()
    };
    assert_eq!(instances(), 1);
    // One that is stopped does not see that its socket is closed: it ends since its parent has ended.
    let (proc, _) = helpers["tracewing-proc"];
    tracewing_testing::signal(proc, libc::SIGSTOP);
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(recorder as i32).unwrap(),
        rustix::process::Signal::KILL,
    )
    .unwrap();
    wait_until("nothing is left", || {
        let is_gone = |pid: &u32| {
            let status = fs::read_to_string(format!("/proc/{pid}/status"));
            status.is_ok_and(|status| value(&status, "State").starts_with('Z'))
                || !fs::exists(format!("/proc/{pid}")).unwrap()
        };
        instances() == 0 && helpers.values().all(|(pid, _)| is_gone(pid))
    });
}

#[test]
fn the_end_of_a_process_of_the_recorder_is_noted_and_ends_nothing_else() {
    if !is_usual_root() {
        return;
    }
    let sessions = Background::new();
    sessions.succeeds("session create web -e pilot:*");
    let place = sessions.start("web");
    let mut pilot = Pilot::run(&sessions, &as_user(NOBODY));
    pilot.emit(10);
    wait_until("it is recorded", || sessions.channel("web", "main")["events"].as_u64() >= Some(10));
    let recorder = sessions.recorders()[0];
    let (proc, _) = helpers(recorder)["tracewing-proc"];
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(proc as i32).unwrap(),
        rustix::process::Signal::KILL,
    )
    .unwrap();
    wait_until("it is seen", || !helpers(recorder).contains_key("tracewing-proc"));
    pilot.emit(10);
    wait_until("it is recorded", || sessions.channel("web", "main")["events"].as_u64() >= Some(20));
    sessions.succeeds("session stop web");
    let said = sessions.succeeds(&format!("info {}", place.join("main").display())).text();
    assert!(said.contains("tracewing-proc, a process of this recorder, has ended"), "{said}");
}

/// A process that does its work until the test ends.
struct Working(std::process::Child);

impl Working {
    fn start(sessions: &Background, before: &[String], program: &Path) -> Self {
        let null = || std::process::Stdio::null();
        Self(sessions.command(before, program).stdout(null()).spawn().unwrap())
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Another user's file system does not answer when the recorder's process opens what that user executes.
#[test]
fn files_that_cannot_be_opened_harm_no_program_of_another_user() {
    const PROGRAMS: usize = 4;
    if !is_usual_root() {
        return;
    }
    let device = Path::new("/dev/fuse");
    if !device.exists() {
        return skip(Cause::File(device), "file systems of users");
    }
    let sessions = Background::new();
    rustix::fs::chmod(sessions.folder(), rustix::fs::Mode::from_raw_mode(0o755)).unwrap();
    let place = sessions.folder().join("served");
    fs::create_dir(&place).unwrap();
    let work = Path::new("/usr/bin/yes");
    let files = crate::fuse::Fuse::serve(&place, work, PROGRAMS as u64);
    let hostile = (0..PROGRAMS)
        .map(|number| Working::start(&sessions, &as_user(NOBODY), &place.join(format!("p{number}"))));
    let programs: Vec<_> = hostile.chain([Working::start(&sessions, &[], work)]).collect();
    let honest = programs.last().unwrap().0.id();
    let pids = programs.iter().map(|one| one.0.id().to_string()).collect::<Vec<_>>().join(",");
    let line = format!("record --no-kernel --profile 99 --call-graph dwarf --for 4 -o t --pid {pids}");
    let mut recorder = sessions.command(&[], crate::harness::TRACEWING);
    recorder.args(line.split(' ')).stderr(std::process::Stdio::piped());
    let mut recorder = Working(recorder.spawn().unwrap());
    wait_until("files are opened in vain", || files.hung() > 0);
    wait_until("the recording ends", || recorder.0.try_wait().unwrap().is_some());
    let mut said = String::new();
    recorder.0.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(said.contains(&format!("programs of user {NOBODY} is incomplete")), "{said}");
    assert!(!said.contains("has ended"), "{said}");
    // Without the tables of its file, there is at most one caller, by its frame pointer.
    let samples = crate::list(&sessions.folder().join("t"));
    let of_honest = samples.iter().filter(|one| one.name == "profile:sample" && one.tid == i64::from(honest));
    let depth = of_honest.map(|one| one.payload["user"].as_array().unwrap().len()).max();
    assert!(depth > Some(4), "{depth:?}");
}

#[test]
fn a_recorder_keeps_what_it_needs_to_write_to_a_folder_of_another_user() {
    if !is_usual_root() || !traceable(tracewing_kernel::privileges()) {
        return;
    }
    let sessions = Background::new();
    let place = sessions.folder().join("nobody");
    fs::create_dir(&place).unwrap();
    rustix::fs::chmod(&place, rustix::fs::Mode::RWXU).unwrap();
    std::os::unix::fs::chown(&place, Some(NOBODY), Some(NOBODY)).unwrap();
    let output = place.join("t");
    let line =
        format!("record -q --system-wide -k sched_switch --rotate-every 1 --for 3 -o {}", output.display());
    let mut recording =
        sessions.command(&[], crate::harness::TRACEWING).args(line.split(' ')).spawn().unwrap();
    wait_until("it records", || output.exists());
    wait_until("it has given up the rest", || {
        let kept = set(&threads(recording.id())[0], "CapPrm");
        has(kept, DAC_OVERRIDE) && !has(kept, SETUID) && !has(kept, SYS_PTRACE)
    });
    assert!(recording.wait().unwrap().success());
    assert!(fs::read_dir(output.join("archives")).unwrap().count() >= 2);
}

#[test]
fn a_recorder_of_another_user_has_none() {
    if !am_root() {
        return skip(Cause::Root, "another user's session needs root");
    }
    let sessions = Background::of_user(NOBODY);
    sessions.succeeds("session create web -e pilot:*");
    sessions.start("web");
    for pid in sessions.recorders() {
        assert!(threads(pid).iter().all(|thread| set(thread, "CapPrm") == 0), "{pid}");
    }
}
