//! Profiles compared with the kernel and perf: whole machines, counters, what perf reports, other users.

use super::*;

#[test]
fn a_recording_of_the_whole_machine_has_older_processes_too() {
    if !harness::traceable() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = busy(folder.path(), FRAME_POINTERS) else { return };
    let mut before = Command::new(program).args(["60", "2"]).stdout(Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    let mut command = harness::tracewing();
    command.current_dir(folder.path()).args(["record", "--quiet", "--profile", "--system-wide"]);
    let output = command.args(["-k", "sched_process_exec", "-o", "t", "--", "sleep", "1"]).ran();
    before.kill().unwrap();
    before.wait().unwrap();
    assert!(output.status.success(), "{}", output.notes());
    let found = json(&["--process", &before.id().to_string()], &folder.path().join("t"));
    assert!(by_function(&found, "total_samples").contains_key("heavy"), "{found}");
    assert!(rows(&found, "profile").iter().all(|row| row["name"] == "busy"), "{found}");
}

/// The scheduler's events, recorded at the same time, show when a thread had which CPU.
#[test]
fn counters_are_read_last_before_the_kernels_recording_is_ended() {
    if !can_sample() || !harness::traceable() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    // The recorder's own writing of files is recorded, too.
    let options = ["--system-wide", "--profile", "-k", "syscalls:sys_enter_*"];
    let recorder = kernel_common::record(place.path(), &options, &["true"]).spawn().unwrap();
    let recording = ended(place, recorder);
    let list = harness::tracewing().arg("list").arg(recording.trace()).ran();
    let text = list.text();
    let last = |name: &str| text.rfind(name).expect("are there");
    assert!(last("profile:counters:") < last("syscall_entry_"), "counters are read after everything else");
}

#[test]
fn samples_lie_where_the_kernel_says_that_their_thread_runs() {
    if !harness::traceable() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = busy(folder.path(), FRAME_POINTERS) else { return };
    let mut command = harness::tracewing();
    command.current_dir(folder.path()).args(["record", "--quiet", "--profile", "997", "-o", "t", "--"]);
    command.arg(program).args(["0.3", "4"]).stdin(Stdio::null()).succeeds();
    let trace = folder.path().join("t");
    if !trace.join("kernel").is_dir() {
        return tracewing_testing::skip(tracewing_testing::Cause::KernelEvents, "no kernel events here");
    }
    let samples = |condition: &str| {
        let options = ["list", "-e", "profile:sample", "--where", condition];
        String::from_utf8(of(&trace, &options).ran().stdout).unwrap().lines().count()
    };
    let (all, running) = (samples("period > 0"), samples("$state == \"running\""));
    assert!(all > 50, "{all} samples");
    // The first ones may come before the first switch that is recorded.
    assert!(running * 100 >= all * 98, "{running} of {all} while the thread runs");
    let program = samples("mode == \"user\" && $mode == \"user\"");
    assert_eq!(program, samples("mode == \"user\""));
    assert!(program > 50, "{program} of {all}");
    // Samples say nothing of what threads did that the kernel's events do not say better.
    let threads = |filter: &[&str]| {
        let output = of(&trace, &[&["threads", "--format", "csv"], filter].concat()).ran();
        output.text()
    };
    let kernel_alone = of(&trace.join("kernel"), &["threads", "--format", "csv"]).ran();
    assert_eq!(threads(&[]).lines().count(), kernel_alone.text().lines().count());
}

/// `perf report`'s share of each function.
fn perf_report(folder: &Path, program: &Path) -> Option<BTreeMap<String, f64>> {
    let data = folder.join("perf.data");
    let mut command = Command::new("perf");
    command.args(["record", "-q", "-e", "cpu-clock", "-F", "499", "-o"]).arg(&data).arg(program).arg("1");
    if !command.output().is_ok_and(|output| output.status.success()) {
        tracewing_testing::skip(
            tracewing_testing::Cause::Program("perf"),
            "perf is not installed, or cannot record",
        );
        return None;
    }
    let output =
        Command::new("perf").args(["report", "--stdio", "-F", "overhead,sym", "-i"]).arg(&data).output();
    let output = String::from_utf8(output.unwrap().stdout).unwrap();
    let line = |line: &str| {
        let (share, symbol) = line.trim().split_once("%")?;
        Some((symbol.trim().strip_prefix("[.] ")?.trim().to_owned(), share.parse().ok()?))
    };
    Some(output.lines().filter_map(line).collect())
}

#[test]
fn perf_says_the_same() {
    let folder = tempfile::tempdir().unwrap();
    if !can_sample() {
        return;
    }
    let Some(program) = busy(folder.path(), &["-DINLINE"]) else { return };
    let Some(theirs) = perf_report(folder.path(), &program) else { return };
    let recording = record(&["--profile", "499"], &[program.to_str().unwrap(), "1"]);
    let ours = outside_kernel(&json(&[], &recording.trace()));
    // How much the kernel does meanwhile is another in each run.
    let (heavy, both) = (ours["heavy"], ours["heavy"] + ours["light"]);
    let share = theirs["heavy"] / (theirs["heavy"] + theirs["light"]);
    assert!(both > 50 && is_about(heavy, both, share), "{ours:?}, perf says {theirs:?}");
    let first = |counts: Vec<(&String, f64)>| {
        counts.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).map(|(name, _)| name.clone())
    };
    let top = first(ours.iter().map(|(name, count)| (name, *count as f64)).collect());
    assert_eq!(top, first(theirs.iter().map(|(name, share)| (name, *share)).collect()));
}

#[test]
fn samples_of_threads_waiting_for_a_lock_are_found() {
    const SOURCE: &str = r"
        #include <pthread.h>
        static pthread_spinlock_t lock;
        static volatile unsigned long sum;
        __attribute__((noinline)) void hold(void) { for (long at = 0; at < 20000000; at++) sum += at; }
        static void *work(void *unused) {
            for (int at = 0; at < 15; at++) {
                pthread_spin_lock(&lock);
                hold();
                pthread_spin_unlock(&lock);
            }
            return unused;
        }
        int main(void) {
            pthread_t other;
            pthread_spin_init(&lock, 0);
            pthread_create(&other, 0, work, 0);
            work(0);
            return pthread_join(other, 0);
        }";
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("wait.c"), folder.path().join("wait"));
    fs::write(&source, SOURCE).unwrap();
    let gcc = Command::new("gcc").args(["-O1", "-pthread", "-o"]).arg(&program).arg(&source).status();
    if !can_sample() || !gcc.is_ok_and(|status| status.success()) {
        return tracewing_testing::skip(tracewing_testing::Cause::Program("gcc"), "no samples, or no gcc");
    }
    recorded::build(&["-p", "tracewing-preload"]);
    let recording = record(&["--locks", "--profile"], &[program]);
    let held = |condition: &str| {
        let found = json(&["--where", condition], &recording.trace());
        let samples = found["samples"].as_u64().unwrap();
        (by_function(&found, "total_samples").get("hold").copied().unwrap_or(0), samples)
    };
    let (all_held, all) = held("period > 0");
    let (held_in_wait, waiting) = held("$waits_for == \"spin\"");
    assert!(waiting > 20 && all_held > 20, "{waiting} waiting, {all_held} in hold() of {all}");
    assert_eq!(held_in_wait, 0, "a thread that waits for the lock does not hold it");
    assert!(all_held + waiting > all * 9 / 10, "{all_held} and {waiting} of {all}");
}

/// The recorder as a user without privileges.
fn as_user_nobody(folder: &Path, options: &[&str], command: &[&str]) -> Option<Output> {
    const NOBODY: u32 = 65534;
    if !am_root() {
        tracewing_testing::skip(tracewing_testing::Cause::Root, "becoming another user needs root");
        return None;
    }
    fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).unwrap();
    let mut recorder = recorder(folder, options);
    match recorder.args(command).uid(NOBODY).gid(NOBODY).output() {
        Ok(output) => Some(output),
        Err(error) => {
            tracewing_testing::skip(
                tracewing_testing::Cause::Root,
                format_args!("the user nobody may not run the recorder: {error}"),
            );
            None
        }
    }
}

#[test]
fn without_privileges_there_are_programs_only() {
    let setting = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    if setting.trim() != "2" {
        return tracewing_testing::skip(
            tracewing_testing::Cause::Setting("/proc/sys/kernel/perf_event_paranoid", "2"),
            format_args!("perf_event_paranoid is {setting:?}, not 2"),
        );
    }
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = busy(folder.path(), FRAME_POINTERS) else { return };
    let command = [program.to_str().unwrap(), "0.5"];
    let Some(output) = as_user_nobody(folder.path(), &["--profile"], &command) else { return };
    let reported = output.notes();
    assert!(output.status.success() && reported.contains("profile: programs only"), "{reported}");
    let found = json(&[], &folder.path().join("t"));
    let objects: BTreeSet<_> = rows(&found, "profile").iter().map(|row| row["object"].as_str()).collect();
    assert!(!objects.contains(&Some("[kernel]")), "{objects:?}");
    assert!(by_function(&found, "total_samples")["heavy"] > 0);

    let output = recorder_system_wide(folder.path(), &program).unwrap();
    let reported = output.notes();
    let line = reported.lines().find(|line| line.contains("perf_event_paranoid")).unwrap();
    assert!(line.contains("the whole machine") && line.contains("is 2"), "{reported}");
    assert_eq!(output.status.code(), Some(1));
    assert!(!folder.path().join("w").exists(), "nothing is left of a recording that did not begin");
}

fn recorder_system_wide(folder: &Path, program: &Path) -> std::io::Result<Output> {
    let mut command = harness::tracewing();
    command.current_dir(folder).args(["record", "--profile", "--system-wide", "-o", "w", "--"]).arg(program);
    command.uid(65534).gid(65534).stdin(Stdio::null()).output()
}
