//! What cannot be recorded of running processes, and what is said.

use super::*;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;

/// A user without an entry in any list.
const OTHER: u32 = 54321;

#[test]
fn each_refusal_has_its_words() {
    let folder = tempfile::tempdir().unwrap();
    let target = Target::start(folder.path(), "subject");
    let pid = target.pid().to_string();
    let thread = target.threads().iter().map(|(tid, _)| *tid).find(|tid| tid.to_string() != pid).unwrap();
    let mut ended = Command::new("true").spawn().unwrap();
    wait_until("it is a zombie", || {
        fs::read_to_string(format!("/proc/{}/stat", ended.id())).is_ok_and(|stat| stat.contains(") Z "))
    });
    for (options, words) in [
        (vec!["--pid", "4194304"], "there is no process 4194304"),
        (vec!["--pid", &thread.to_string()], &format!("{thread} is a thread of process {pid}")),
        (vec!["--pid", &ended.id().to_string()], &format!("process {} has ended", ended.id())),
        (vec!["--pid", "2"], "is a kernel thread"),
        (vec!["--name", "no-such-name-*"], "no process is called no-such-name-*"),
        (vec!["--cgroup", "/no/such"], "there is no control group /no/such"),
        (vec!["--pid", "0"], "expected a process id"),
        (vec!["--pid", "name"], "--name takes names"),
        (vec!["--pid", &pid, "--locks"], "`tracewing record --locks -- CMD`"),
        (vec!["--pid", &pid, "--functions", "x*"], "`tracewing record --functions -- CMD`"),
        (vec!["--pid", &pid, "--with", "1"], "cannot be used with"),
        (vec!["--pid", &pid, "--", "true"], "cannot be used with"),
        (vec!["--no-children", "--", "true"], "required"),
        (vec!["--pid", "4194304,2"], "no process can be recorded: process 2"),
    ] {
        let notes = refusal(folder.path(), &options);
        if words.contains("kernel thread") && notes.contains("there is no process 2") {
            continue; // In a container.
        }
        assert!(notes.contains(words), "{options:?}: {notes}");
    }
    ended.wait().unwrap();
}

#[test]
fn it_does_not_record_itself() {
    let folder = tempfile::tempdir().unwrap();
    // The shell becomes the recorder, and has its number.
    let script = "exec \"$0\" record -o t --pid $$";
    let output = Command::new("sh").current_dir(folder.path()).args(["-c", script, harness::TRACEWING]).ran();
    assert!(!output.status.success());
    assert!(output.notes().contains("is this recorder itself"), "{}", output.notes());
}

#[test]
fn one_that_is_refused_does_not_stop_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let target = Target::start(folder.path(), "subject");
    let pids = format!("4194304,{}", target.pid());
    let recording = Attached::start(folder.path(), &["--pid", &pids, "--for", "0.2"]).ended();
    assert_eq!(recording.attached(), [u64::from(target.pid())]);
    let notes = recording.output.notes();
    assert!(notes.contains("there is no process 4194304"), "{notes}");
}

#[test]
fn processes_of_other_users_are_for_root() {
    if !tracewing_testing::is_root() {
        return tracewing_testing::skip(tracewing_testing::Cause::Root, "to become another user needs root");
    }
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let copy = folder.path().join("tracewing");
    tracewing_testing::copy_program(harness::TRACEWING, &copy);
    let (roots, own) = (Target::start(folder.path(), "roots"), Target::start_as(folder.path(), "own", OTHER));
    let record = |output: &str, pids: &str| {
        let mut command = Command::new(&copy);
        command.current_dir(folder.path()).args(["record", "--for", "0.3", "-o", output, "--pid", pids]);
        command.uid(OTHER).gid(OTHER).env_remove("XDG_RUNTIME_DIR").ran()
    };
    let output = record("a", &roots.pid().to_string());
    let expected = format!(
        "process {} (roots) is not recorded: it belongs to user 0, and only root may record processes of other users (EPERM)",
        roots.pid()
    );
    assert!(!output.status.success() && output.notes().contains(&expected), "{}", output.notes());
    assert!(!folder.path().join("a").exists());
    // The other one is recorded.
    let output = record("b", &format!("{},{}", roots.pid(), own.pid()));
    let notes = output.notes();
    assert!(output.status.success() && notes.contains(&expected), "{notes}");
    assert!(notes.contains("the kernel is not recorded: kernel events need root"), "{notes}");
    assert!(notes.contains(&format!("attached to 1 process: {} (own)", own.pid())), "{notes}");
    // Root records anybody's.
    let recording =
        Attached::start(folder.path(), &["--pid", &own.pid().to_string(), "--for", "0.2"]).ended();
    assert_eq!(recording.summary()["attached"][0]["uid"], OTHER);
}
