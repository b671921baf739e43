//! Which processes are recorded: by name, in control groups, in other namespaces.

use super::*;
use harness::traceable;
use std::fs;

#[test]
fn a_name_is_that_of_the_executable_and_a_pattern() {
    let folder = tempfile::tempdir().unwrap();
    // No other process of this machine is called so.
    let name = format!("by-name-{}", std::process::id());
    let (first, second) = (Target::start(folder.path(), &name), Target::start(folder.path(), &name));
    let other = Target::start(folder.path(), "other");
    let pattern = format!("{}?", &name[..name.len() - 1]);
    let recorder = Attached::start(folder.path(), &["--name", &pattern, "--for", "0.3"]);
    let mut expected = [first.pid(), second.pid()].map(u64::from);
    expected.sort_unstable();
    let mut attached = recorder.ended().attached();
    attached.sort_unstable();
    assert_eq!(attached, expected);
    drop(other);
}

/// A control group, removed when dropped.
struct Cgroup(PathBuf);

impl Cgroup {
    fn make() -> Option<Self> {
        // Where version 2 is alone, and where version 1 is mounted, too.
        let points = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
        let Some(point) = points.into_iter().find(|point| Path::new(point).join("cgroup.procs").exists())
        else {
            tracewing_testing::skip(
                tracewing_testing::Cause::Listed("no control group"),
                "control groups of version 2 are not mounted",
            );
            return None;
        };
        let path = Path::new(point).join(format!("tracewing-test-{}", std::process::id()));
        match fs::create_dir(&path) {
            Ok(()) => Some(Self(path)),
            Err(error) => {
                tracewing_testing::skip(
                    tracewing_testing::Cause::Listed("no control group"),
                    format_args!("no control group can be made here: {error}"),
                );
                None
            }
        }
    }

    fn take(&self, pid: u32) {
        fs::write(self.0.join("cgroup.procs"), pid.to_string()).unwrap();
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        wait_until("the control group is empty", || {
            fs::read_to_string(self.0.join("cgroup.procs")).is_ok_and(|text| text.is_empty())
        });
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn what_enters_a_control_group_is_recorded() {
    if !traceable() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let Some(cgroup) = Cgroup::make() else { return };
    let name = cgroup.0.file_name().unwrap().to_str().unwrap().to_owned();
    assert!(refusal(folder.path(), &["--cgroup", &name]).contains("no process is in the control group"));
    let (first, second) = (Target::start(folder.path(), "first"), Target::start(folder.path(), "second"));
    cgroup.take(first.pid());
    // As `/proc/PID/cgroup` has it.
    let recorder = Attached::start(folder.path(), &["--profile", "--cgroup", &format!("/{name}")]);
    std::thread::sleep(Duration::from_millis(300));
    cgroup.take(second.pid());
    // It may be found a second later.
    std::thread::sleep(Duration::from_millis(1500));
    let pids = [first.pid(), second.pid()];
    assert_eq!((first.end(), second.end()), (Some(7), Some(7)));
    let recording = recorder.ended();
    assert_eq!(recording.attached(), pids.map(u64::from));
    for pid in pids {
        let names = recording.names(pid);
        for name in ["worker-0", "worker-1"] {
            assert!(names.iter().any(|other| other == name), "{pid}: {names:?}");
        }
        let samples = harness::json(&recording.trace, &["profile", "--process", &pid.to_string()]);
        assert!(samples["samples"].as_u64().unwrap() > 0, "{samples}");
    }
}

#[test]
fn numbers_of_processes_in_other_namespaces_are_the_recorders() {
    if !traceable() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let apart = [
        "unshare",
        "--user",
        "--map-root-user",
        "--pid",
        "--mount",
        "--net",
        "--ipc",
        "--fork",
        "--mount-proc",
    ];
    let can = Command::new(apart[0]).args(&apart[1..]).arg("true").ran();
    if !can.status.success() {
        return tracewing_testing::skip(
            tracewing_testing::Cause::Listed("no namespaces"),
            format_args!("namespaces cannot be made here: {}", can.notes()),
        );
    }
    let path = target::program(folder.path(), "inside");
    let outer = Target::of(target::command(&path, &apart));
    // `unshare` has forked the target, which is process 1 where it is.
    let children = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        let status = fs::read_to_string(entry.path().join("status")).ok()?;
        let parent =
            status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse::<u32>().ok()?;
        (parent == outer.pid()).then_some(pid)
    });
    let pids: Vec<u32> = children.collect();
    let [pid] = pids[..] else { panic!("{pids:?}") };
    let recorder = Attached::start(folder.path(), &["--profile", "--pid", &pid.to_string()]);
    std::thread::sleep(Duration::from_millis(400));
    assert_eq!(outer.end(), Some(7));
    let recording = recorder.ended();
    assert_eq!(recording.attached(), [u64::from(pid)]);
    let names = recording.names(pid);
    assert!(names.contains(&"worker-0".to_owned()) && names.contains(&"worker-1".to_owned()), "{names:?}");
    let samples = harness::json(&recording.trace, &["profile", "--process", &pid.to_string()]);
    assert!(samples["samples"].as_u64().unwrap() > 0, "{samples}");
}
