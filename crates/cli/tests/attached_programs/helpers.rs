//! The processes by which a recorder of root attaches: what they may do, and what is left when one of them,
//! or the recorder, is killed.

use super::*;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::CommandExt;
use tracewing_testing::{Cause, NOBODY, copy_program, signal, skip};

/// Numbers of `linux/capability.h`.
const DAC_READ_SEARCH: u32 = 2;
const KILL: u32 = 5;
const SETGID: u32 = 6;
const SETUID: u32 = 7;
const SYS_PTRACE: u32 = 19;
const SYS_ADMIN: u32 = 21;
const SYS_NICE: u32 = 23;

fn mask(capabilities: &[u32]) -> u64 {
    capabilities.iter().map(|number| 1 << number).sum()
}

fn status(pid: u32) -> Option<String> {
    fs::read_to_string(format!("/proc/{pid}/status")).ok()
}

fn field<'s>(status: &'s str, name: &str) -> &'s str {
    status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap_or_default().trim()
}

fn set(status: &str, name: &str) -> u64 {
    u64::from_str_radix(field(status, name), 16).unwrap()
}

fn children(pid: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let texts = threads.map(|thread| fs::read_to_string(thread.path().join("children")).unwrap_or_default());
    texts
        .flat_map(|text| text.split_whitespace().map(|pid| pid.parse().unwrap()).collect::<Vec<_>>())
        .collect()
}

/// The process that attaches for a recorder, and the one that starts readers for that one.
fn helpers(recorder: u32) -> [u32; 2] {
    let named = |pid: u32, name: &str| {
        let is_named = |pid: &u32| status(*pid).is_some_and(|status| field(&status, "Name") == name);
        children(pid).into_iter().find(is_named).unwrap_or_else(|| panic!("{name} of {pid}"))
    };
    // The kernel keeps 15 bytes of a name.
    let ptrace = named(recorder, "tracewing-ptrac");
    [ptrace, named(ptrace, "tracewing-start")]
}

fn has_ended(pid: u32) -> bool {
    status(pid).is_none_or(|status| field(&status, "State").starts_with(['Z', 'X']))
}

/// Whether this process has what a recorder of root has to have so that others attach for it.
fn is_usual_root() -> bool {
    let own = status(std::process::id()).unwrap();
    let needed = mask(&[SYS_PTRACE, SYS_ADMIN, SETUID, SETGID, KILL, DAC_READ_SEARCH, SYS_NICE]);
    let is_usual = am_root() && set(&own, "CapEff") & needed == needed;
    if !is_usual {
        skip(Cause::Root, "not root with all capabilities");
    }
    is_usual
}

/// A program of another user, whose file that user can read.
fn of_nobody(folder: &std::path::Path) -> Resident {
    let copy = folder.join("resident");
    copy_program(&*PROGRAM, &copy);
    Resident::of(Command::new(copy).uid(NOBODY).gid(NOBODY).current_dir("/"))
}

fn shared_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    folder
}

#[test]
fn each_helper_has_just_the_rights_that_it_needs() {
    if !is_usual_root() {
        return;
    }
    let folder = shared_folder();
    let mut program = of_nobody(folder.path());
    let recorder = Recorder::start(&folder.path().join("t"), program.pid, &[], 1);
    let [ptrace, starts] = helpers(recorder.pid().parse().unwrap());
    let expected = [
        (ptrace, mask(&[SYS_PTRACE, SYS_ADMIN, SYS_NICE, DAC_READ_SEARCH])),
        (starts, mask(&[SETUID, SETGID, KILL])),
    ];
    for (pid, capabilities) in expected {
        for thread in fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten() {
            let Ok(status) = fs::read_to_string(thread.path().join("status")) else { continue };
            let sets = ["CapPrm", "CapEff", "CapInh", "CapAmb"].map(|name| set(&status, name));
            assert_eq!(sets, [capabilities, capabilities, 0, 0], "{status}");
            assert_eq!(field(&status, "NoNewPrivs"), "1");
        }
    }
    assert_eq!(set(&status(ptrace).unwrap(), "CapBnd"), expected[0].1);
    // Plug-ins are looked for again and again: each time a process of the program's user reads.
    let mut seen = BTreeSet::new();
    let ids = [NOBODY; 4].map(|id| id.to_string()).join("\t");
    wait_until("a reader is seen as it has become the user", || {
        let readers = children(starts).into_iter().filter_map(status);
        seen.extend(readers.filter(|status| field(status, "Uid") == ids));
        !seen.is_empty()
    });
    for status in seen {
        let sets = ["CapPrm", "CapEff", "CapInh", "CapAmb"].map(|name| set(&status, name));
        assert_eq!(sets, [0; 4], "{status}");
        assert_eq!((field(&status, "Gid"), field(&status, "Groups")), (&*ids, ""));
        assert_eq!((field(&status, "NoNewPrivs"), field(&status, "Name")), ("1", "tracewing-reads"));
    }
    program.order("emit 5");
    let trace = recorder.trace().to_owned();
    recorder.stop();
    assert!(has_ended(ptrace) && has_ended(starts));
    assert_eq!(count(&trace, "resident:step"), 5);
    program.end();
}

#[test]
fn nothing_is_left_of_a_killed_recorder() {
    if !is_usual_root() {
        return;
    }
    let folder = shared_folder();
    let mut program = of_nobody(folder.path());
    let before = program.state();
    let recorder = Recorder::start(&folder.path().join("t"), program.pid, &[], 1);
    let helpers = helpers(recorder.pid().parse().unwrap());
    recorder.kill();
    wait_until("its helpers have ended", || helpers.into_iter().all(has_ended));
    wait_until("the agent has ended", || program.state() == before);
    program.order("emit 5");
    program.end();
}

#[test]
fn a_recorder_whose_helper_is_killed_records_what_has_joined() {
    if !is_usual_root() {
        return;
    }
    let folder = shared_folder();
    let mut program = of_nobody(folder.path());
    let recorder = Recorder::start(&folder.path().join("t"), program.pid, &[], 1);
    let [ptrace, starts] = helpers(recorder.pid().parse().unwrap());
    program.order("emit 5");
    signal(ptrace, libc::SIGKILL);
    wait_until("its own helper ends with it", || has_ended(starts));
    program.order("emit 7");
    // What it executes would have to be attached to.
    assert_eq!(program.order("exec"), "ready");
    // The next look notices it.
    wait_until("the recorder has reaped it", || status(ptrace).is_none());
    let trace = recorder.trace().to_owned();
    let said = recorder.stop();
    assert_eq!(count(&trace, "resident:step"), 12, "{said}");
    let note =
        "are not recorded: the recorder's process tracewing-ptrace, which attaches to programs, has ended";
    assert!(said.contains(note), "{said}");
    assert!(said.contains("\"state\":\"complete\""), "{said}");
    program.end();
}

/// At any moment of an attempt.
#[test]
fn a_helper_that_is_killed_at_any_moment_leaves_programs_as_they_were() {
    if !is_usual_root() {
        return;
    }
    let folder = shared_folder();
    let mut program = of_nobody(folder.path());
    let before = program.state();
    for round in 0..30_u64 {
        let recorder = Recorder::spawn(&folder.path().join(round.to_string()), program.pid, &[]);
        let pid = recorder.pid().parse().unwrap();
        let mut helper = None;
        wait_until("there is a helper", || {
            let is_named =
                |pid: &u32| status(*pid).is_some_and(|status| field(&status, "Name") == "tracewing-ptrac");
            helper = children(pid).into_iter().find(is_named);
            helper.is_some()
        });
        std::thread::sleep(std::time::Duration::from_micros(1000 + round * 501));
        signal(helper.unwrap(), libc::SIGKILL);
        assert_eq!(program.order("emit 10"), "emitted");
        wait_until("it has begun", || harness::run(&["rules", &recorder.pid()]).status.success());
        recorder.stop();
        wait_until("the agent has ended", || program.state() == before);
    }
    let recorder = Recorder::start(&folder.path().join("last"), program.pid, &[], 1);
    program.order("emit 10");
    let trace = recorder.trace().to_owned();
    recorder.stop();
    assert_eq!(count(&trace, "resident:step"), 10);
    wait_until("the agent has ended", || program.state() == before);
    assert_eq!(program.mappings().1, 0);
    program.end();
}
