//! `tracewing record --profile` and `tracewing profile`: C programs that spend their time as their source
//! says, with frame pointers and without, beside what `perf` and the kernel's scheduler say of them.

mod kernel_common;
mod recorded;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use recorded::{Recording, ended, is_root, record, recorder};
use serde_json::Value;
use tracewing_testing::stolen;

const FRAME_POINTERS: &[&str] = &["-fno-omit-frame-pointer"];

/// Compiles `crates/profile/tests/programs/busy.c`; `None` where there is no compiler.
fn busy(folder: &Path, options: &[&str]) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../profile/tests/programs/busy.c");
    let program = folder.join("busy");
    match Command::new("gcc").args(["-O1", "-pthread", "-o"]).arg(&program).arg(source).args(options).output()
    {
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            Some(program)
        }
        Err(_) => {
            tracewing_testing::skip(tracewing_testing::Cause::Program("gcc"), "gcc is not installed");
            None
        }
    }
}

/// Whether this machine gives samples; it says why not.
fn can_sample() -> bool {
    let setting = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    let can = setting.trim().parse::<i32>().is_ok_and(|setting| is_root() || setting <= 2);
    if !can {
        tracewing_testing::skip(
            tracewing_testing::Cause::Root,
            format_args!("perf_event_paranoid is {setting:?}"),
        );
    }
    can
}

/// A recording of the program with samples, or nothing where that cannot be had.
fn profiled(
    options: &[&str],
    compiled: &[&str],
    arguments: &[&str],
) -> Option<(tempfile::TempDir, Recording)> {
    let folder = tempfile::tempdir().unwrap();
    if !can_sample() {
        return None;
    }
    let program = busy(folder.path(), compiled)?;
    let command = [&[program.to_str().unwrap()], arguments].concat();
    Some((folder, record(&[&["--profile", "499"], options].concat(), &command)))
}

fn tracewing(arguments: &[&str], trace: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tracewing")).args(arguments).arg(trace).output().unwrap()
}

fn json(options: &[&str], trace: &Path) -> Value {
    let output = tracewing(&[&["profile", "--format", "json"], options].concat(), trace);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn rows<'v>(found: &'v Value, name: &str) -> &'v Vec<Value> {
    found[name].as_array().unwrap()
}

/// Samples in functions, with what they have called, or without.
fn by_function(found: &Value, column: &str) -> BTreeMap<String, u64> {
    let row = |row: &Value| (row["function"].as_str().unwrap().to_owned(), row[column].as_u64().unwrap());
    let mut counts = BTreeMap::new();
    for (function, count) in rows(found, "profile").iter().map(row) {
        *counts.entry(function).or_default() += count;
    }
    counts
}

/// Samples by their innermost functions, without those in the kernel: there lie those that were due when
/// their thread was put off its CPU, which on a busy machine are many.
fn outside_kernel(found: &Value) -> BTreeMap<String, u64> {
    let outside: Value =
        rows(found, "profile").iter().filter(|row| row["object"] != "[kernel]").cloned().collect();
    by_function(&serde_json::json!({ "profile": outside }), "own")
}

/// Whether a part of samples is near to what it should be: five times the deviation that chance gives it.
fn is_about(part: u64, of: u64, share: f64) -> bool {
    let deviation = (share * (1.0 - share) / of as f64).sqrt();
    (part as f64 / of as f64 - share).abs() < 5.0 * deviation + 0.01
}

#[test]
fn samples_are_where_the_time_goes() {
    let before = stolen();
    let Some((_program, recording)) = profiled(&[], FRAME_POINTERS, &["1"]) else { return };
    assert_eq!(recording.lost(), 0);
    let found = json(&[], &recording.trace());
    let (all, total) = (found["samples"].as_u64().unwrap(), by_function(&found, "total"));
    assert!(all > 50, "{all} samples");
    assert!(is_about(total["heavy"], all, 0.75), "{total:?} of {all}");
    assert!(is_about(total["light"], all, 0.25), "{total:?} of {all}");
    for function in ["spin", "work", "main"] {
        assert!(total[function] * 100 >= all * 95, "{function}: {total:?} of {all}");
    }
    let is_program = |row: &Value| row["program"].as_str().is_some_and(|path| path.ends_with("/busy"));
    assert!(rows(&found, "profile").iter().all(is_program), "{found}");
    assert_eq!(by_function(&found, "own").values().sum::<u64>(), all);
    let own = outside_kernel(&found);
    assert!(own["spin"] > 50 && own["spin"] * 100 >= own.values().sum::<u64>() * 95, "{own:?} of {all}");
    let (chains, cut) = (found["chains"].as_u64().unwrap(), found["cut_chains"].as_u64().unwrap());
    assert!(cut * 20 <= chains, "{cut} of {chains} chains are cut");
    // Each sample stands for as much time as the kernel counts for the program.
    let counters = json(&["--counters"], &recording.trace());
    let clock = rows(&counters, "counters").iter().find(|row| row["counter"] == "task_clock").unwrap();
    let counted = clock["value"].as_u64().unwrap();
    let sampled: u64 = rows(&found, "profile").iter().map(|row| row["time_ns"].as_u64().unwrap()).sum();
    // What the host took is counted, too; the timer comes but once for all of it.
    let stolen = (stolen() - before).as_nanos() as u64;
    let range = (counted * 4 / 5).saturating_sub(stolen)..=counted * 6 / 5;
    assert!(range.contains(&sampled), "{sampled} ns sampled, {counted} counted");
    recording.compare_with_babeltrace2();
}

#[test]
fn without_frame_pointers_chains_are_cut_and_it_is_told() {
    let Some((_program, recording)) = profiled(&[], &["-fomit-frame-pointer"], &["0.7"]) else { return };
    let found = json(&[], &recording.trace());
    let (chains, cut) = (found["chains"].as_u64().unwrap(), found["cut_chains"].as_u64().unwrap());
    assert!(chains > 20 && cut * 10 >= chains * 9, "{cut} of {chains} chains are cut");
    let own = outside_kernel(&found);
    let all: u64 = own.values().sum();
    assert!(
        own["spin"] > 20 && own["spin"] * 100 >= all * 95,
        "the innermost function is known all the same: {own:?}"
    );
    let shown = tracewing(&["profile"], &recording.trace());
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains(&format!("{cut} of {chains} call chains of programs are cut")), "{shown}");
}

#[test]
fn threads_are_told_apart() {
    let Some((_program, recording)) = profiled(&[], FRAME_POINTERS, &["0.4", "3"]) else { return };
    let threads: BTreeSet<i64> = recording.stdout.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(threads.len(), 3);
    let found = json(&["--by", "thread"], &recording.trace());
    let sampled: BTreeSet<i64> =
        rows(&found, "profile").iter().map(|row| row["thread"].as_i64().unwrap()).collect();
    assert_eq!(sampled, threads);
    let names: BTreeSet<_> = rows(&found, "profile").iter().map(|row| row["thread_name"].as_str()).collect();
    assert_eq!(names, BTreeSet::from([Some("busy")]));
    let of_each = threads.iter().map(|tid| {
        let found = json(&["--tid", &tid.to_string()], &recording.trace());
        assert!(by_function(&found, "total").contains_key("heavy"), "mappings are the whole process'");
        found["samples"].as_u64().unwrap()
    });
    assert_eq!(of_each.sum::<u64>(), found["samples"].as_u64().unwrap());
}

#[test]
fn slices_add_up_and_know_what_was_mapped_before() {
    let Some((_program, recording)) = profiled(&[], FRAME_POINTERS, &["1"]) else { return };
    let trace = recording.trace();
    let samples = |options: &[&str]| json(options, &trace)["samples"].as_u64().unwrap();
    let (all, first, last) = (samples(&[]), samples(&["--to", "+0.4999s"]), samples(&["--from", "+0.5s"]));
    assert!((all - 1..=all).contains(&(first + last)), "{first} and {last} of {all}");
    let own = by_function(&json(&["--from", "+0.5s"], &trace), "own");
    assert!(own.contains_key("spin"), "{own:?}");
    let tree = json(&["--tree"], &trace);
    let deepest = rows(&tree, "tree").iter().find(|row| row["function"] == "spin").unwrap();
    assert!(deepest["depth"].as_u64().unwrap() >= 3, "{tree}");
    let callers = json(&["--tree=callers"], &trace);
    assert_eq!(rows(&callers, "tree")[0]["function"], "spin");
    let graph = recording.folder.path().join("graph.svg");
    let drawn = tracewing(&["profile", "--flame-graph", graph.to_str().unwrap()], &trace);
    assert!(drawn.status.success(), "{}", String::from_utf8_lossy(&drawn.stderr));
    let graph = fs::read_to_string(graph).unwrap();
    assert!(graph.contains("<svg") && graph.contains("heavy"), "{}", &graph[..graph.len().min(300)]);
}

#[test]
fn children_have_names_and_code_of_their_own() {
    let Some((program, recording)) = profiled(&[], FRAME_POINTERS, &["0"]) else { return };
    drop(recording);
    let busy = program.path().join("busy");
    let script = format!("{0} 0.3 & {0} 0.3 2; wait", busy.display());
    let recording = record(&["--profile"], &["sh", "-c", &script]);
    let found = json(&[], &recording.trace());
    let heavy = rows(&found, "profile").iter().filter(|row| row["function"] == "heavy");
    let processes: BTreeSet<_> = heavy.map(|row| (row["process"].as_i64(), row["name"].as_str())).collect();
    assert_eq!(processes.len(), 2, "{processes:?}");
    assert!(processes.iter().all(|(_, name)| *name == Some("busy")), "{processes:?}");
}

/// What tells of code is taken away, one kind of events at a time: what it told is unknown, and the rest is
/// as before.
#[test]
fn what_explains_samples_is_named_where_it_is_missing() {
    let Some((program, _)) = profiled(&[], FRAME_POINTERS, &["0"]) else { return };
    // The shell makes a process for the program, which begins with the shell's file.
    let script = format!("{0} 0.3; {0} 0.2", program.path().join("busy").display());
    let recording = record(&["--profile", "499"], &["sh", "-c", &script]);
    let found = json(&["--least", "0"], &recording.trace());
    let whole = by_function(&found, "own");
    assert!(whole["spin"] > 0 && found["cut_chains"].is_u64(), "{found}");
    let all: u64 = whole.values().sum();
    for (events, says) in [
        ("profile:mapping", "mappings of files"),
        ("profile:kernel_symbol", "functions of the kernel"),
        ("profile:thread", "names and programs of threads"),
        ("profile:fork", "new processes"),
    ] {
        let part = recording.folder.path().join("part");
        let extracted = tracewing(
            &["convert", "--to", "ctf1", "--exclude", events, recording.trace().to_str().unwrap()],
            &part,
        );
        assert!(extracted.status.success(), "{extracted:?}");
        let said = String::from_utf8(tracewing(&["profile", "--format", "json"], &part).stderr).unwrap();
        assert!(said.contains(says), "{events}: {said}");
        let some = json(&["--least", "0"], &part);
        let counts = by_function(&some, "own");
        assert_eq!(counts.values().sum::<u64>(), all, "{events}: samples are left out");
        for (function, count) in counts.iter().filter(|(function, _)| !function.starts_with('[')) {
            assert!(*count <= whole[function], "{events}: {count} in {function} of {whole:?}");
        }
        let is_kernel = events == "profile:kernel_symbol";
        assert_eq!(counts.contains_key("spin"), events != "profile:mapping", "{events}: {counts:?}");
        assert_eq!(some["cut_chains"].is_null(), events == "profile:mapping");
        assert!(rows(&some, "profile").iter().all(|row| row["program"].is_null() != is_kernel), "{some}");
        fs::remove_dir_all(&part).unwrap();
    }
}

#[test]
fn of_the_whole_machine_also_those_are_seen_who_were_there_before() {
    if !kernel_common::traceable() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = busy(folder.path(), FRAME_POINTERS) else { return };
    let mut before = Command::new(program).args(["60", "2"]).stdout(Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    let mut command = Command::new(env!("CARGO_BIN_EXE_tracewing"));
    command.current_dir(folder.path()).args(["record", "--quiet", "--profile", "--system-wide"]);
    let output = command.args(["-k", "sched_process_exec", "-o", "t", "--", "sleep", "1"]).output().unwrap();
    before.kill().unwrap();
    before.wait().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let found = json(&["--process", &before.id().to_string()], &folder.path().join("t"));
    assert!(by_function(&found, "total").contains_key("heavy"), "{found}");
    assert!(rows(&found, "profile").iter().all(|row| row["name"] == "busy"), "{found}");
}

/// The kernel's scheduler, recorded beside, says when a thread had which CPU.
#[test]
fn counters_are_read_last_before_the_kernels_recording_is_ended() {
    if !can_sample() || !kernel_common::traceable() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    // The recorder writes its files in front of everybody.
    let options = ["--system-wide", "--profile", "-k", "syscalls:sys_enter_*"];
    let recorder = kernel_common::record(place.path(), &options, &["true"]).spawn().unwrap();
    let recording = ended(place, recorder);
    let list =
        Command::new(env!("CARGO_BIN_EXE_tracewing")).arg("list").arg(recording.trace()).output().unwrap();
    let text = String::from_utf8(list.stdout).unwrap();
    let last = |name: &str| text.rfind(name).expect("are there");
    assert!(last("profile:counters:") < last("syscall_entry_"), "counters are read behind all else");
}

#[test]
fn samples_lie_where_the_kernel_says_that_their_thread_runs() {
    if !kernel_common::traceable() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = busy(folder.path(), FRAME_POINTERS) else { return };
    let mut command = Command::new(env!("CARGO_BIN_EXE_tracewing"));
    command.current_dir(folder.path()).args(["record", "--quiet", "--profile", "997", "-o", "t", "--"]);
    let output = command.arg(program).args(["0.3", "4"]).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let trace = folder.path().join("t");
    if !trace.join("kernel").is_dir() {
        return tracewing_testing::skip(tracewing_testing::Cause::KernelEvents, "no kernel events here");
    }
    let samples = |condition: &str| {
        let options = ["list", "-e", "profile:sample", "--where", condition];
        String::from_utf8(tracewing(&options, &trace).stdout).unwrap().lines().count()
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
        let output = tracewing(&[&["threads", "--format", "csv"], filter].concat(), &trace);
        String::from_utf8(output.stdout).unwrap()
    };
    let kernel_alone = tracewing(&["threads", "--format", "csv"], &trace.join("kernel"));
    assert_eq!(threads(&[]).lines().count(), String::from_utf8(kernel_alone.stdout).unwrap().lines().count());
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
fn samples_of_those_who_wait_for_a_lock_are_found() {
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
        (by_function(&found, "total").get("hold").copied().unwrap_or(0), samples)
    };
    let (all_held, all) = held("period > 0");
    let (held_in_wait, waiting) = held("$waits_for == \"spin\"");
    assert!(waiting > 20 && all_held > 20, "{waiting} waiting, {all_held} in hold() of {all}");
    assert_eq!(held_in_wait, 0, "who waits for the lock has not got it");
    assert!(all_held + waiting > all * 9 / 10, "{all_held} and {waiting} of {all}");
}

/// The recorder is stopped so long that the kernel's buffer cannot hold what comes meanwhile.
#[test]
fn lost_samples_are_counted() {
    let Some((program, _)) = profiled(&[], FRAME_POINTERS, &["0"]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let command = program.path().join("busy");
    let child = recorder(folder.path(), &["--profile", "20000"]).arg(command).arg("4.5").spawn().unwrap();
    let pid = i32::try_from(child.id()).unwrap();
    std::thread::sleep(Duration::from_millis(800));
    // SAFETY: signals to the recorder that was just started.
    assert_eq!(unsafe { libc::kill(pid, libc::SIGSTOP) }, 0);
    std::thread::sleep(Duration::from_millis(2500));
    // SAFETY: as above.
    assert_eq!(unsafe { libc::kill(pid, libc::SIGCONT) }, 0);
    let recording = ended(folder, child);
    let lost = recording.lost();
    if lost == 0 {
        return tracewing_testing::skip(
            tracewing_testing::Cause::Listed("no loss"),
            "this machine had too little time for the program to lose a sample",
        );
    }
    assert_eq!(recording.reasons(), BTreeMap::from([("profile buffer full", lost)]));
    assert_eq!(json(&[], &recording.trace())["lost"], lost);
    let shown = String::from_utf8(tracewing(&["profile"], &recording.trace()).stdout).unwrap();
    assert!(shown.contains(&format!(" {lost} lost")), "{shown}");
}

/// Until some samples of the recording in `t` are written, and then for as long as it takes to write more.
fn wait_for_samples(folder: &Path) {
    let begin = Instant::now();
    let is_written = |entry: fs::DirEntry| {
        entry.file_name() != "metadata" && entry.metadata().is_ok_and(|data| data.is_file() && data.len() > 0)
    };
    let written = || fs::read_dir(folder.join("t/profile")).is_ok_and(|all| all.flatten().any(is_written));
    while !written() {
        assert!(begin.elapsed() < Duration::from_secs(60), "no samples are written");
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_secs(1));
}

#[test]
fn ctrl_c_leaves_a_good_recording() {
    let Some((program, _)) = profiled(&[], FRAME_POINTERS, &["0"]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let child =
        recorder(folder.path(), &["--profile"]).arg(program.path().join("busy")).arg("60").spawn().unwrap();
    wait_for_samples(folder.path());
    let group = -i32::try_from(child.id()).unwrap();
    // SAFETY: a signal to the group that was made for this recorder.
    assert_eq!(unsafe { libc::kill(group, libc::SIGINT) }, 0);
    let output = child.wait_with_output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    let summary: Value = serde_json::from_str(told.lines().next_back().unwrap()).unwrap();
    assert_eq!(summary["state"], "complete");
    let found = json(&[], &folder.path().join("t"));
    assert!(by_function(&found, "total").contains_key("heavy"));
    assert_eq!(told.contains("profile: no hardware counters"), found["trigger"] == "cpu-clock", "{told}");
}

#[test]
fn a_killed_recorder_leaves_what_was_written() {
    let Some((program, _)) = profiled(&[], FRAME_POINTERS, &["0"]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut child =
        recorder(folder.path(), &["--profile"]).arg(program.path().join("busy")).arg("60").spawn().unwrap();
    wait_for_samples(folder.path());
    child.kill().unwrap();
    child.wait().unwrap();
    let group = -i32::try_from(child.id()).unwrap();
    // SAFETY: as above; the program has survived its recorder.
    unsafe { libc::kill(group, libc::SIGKILL) };
    let output = tracewing(&["profile", "--format", "json"], &folder.path().join("t"));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(by_function(&found, "total").contains_key("heavy"));
}

/// The recorder as somebody without privileges.
fn as_nobody(folder: &Path, options: &[&str], command: &[&str]) -> Option<Output> {
    const NOBODY: u32 = 65534;
    if !is_root() {
        tracewing_testing::skip(tracewing_testing::Cause::Root, "to become somebody else needs root");
        return None;
    }
    fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).unwrap();
    let mut recorder = recorder(folder, options);
    match recorder.args(command).uid(NOBODY).gid(NOBODY).output() {
        Ok(output) => Some(output),
        Err(error) => {
            tracewing_testing::skip(
                tracewing_testing::Cause::Root,
                format_args!("nobody may not run the recorder: {error}"),
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
    let Some(output) = as_nobody(folder.path(), &["--profile"], &command) else { return };
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && told.contains("profile: programs only"), "{told}");
    let found = json(&[], &folder.path().join("t"));
    let objects: BTreeSet<_> = rows(&found, "profile").iter().map(|row| row["object"].as_str()).collect();
    assert!(!objects.contains(&Some("[kernel]")), "{objects:?}");
    assert!(by_function(&found, "total")["heavy"] > 0);

    let output = recorder_system_wide(folder.path(), &program).unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    let line = told.lines().find(|line| line.contains("perf_event_paranoid")).unwrap();
    assert!(line.contains("the whole machine") && line.contains("is 2"), "{told}");
    assert_eq!(output.status.code(), Some(1));
    assert!(!folder.path().join("w").exists(), "nothing is left of a recording that did not begin");
}

fn recorder_system_wide(folder: &Path, program: &Path) -> std::io::Result<Output> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tracewing"));
    command.current_dir(folder).args(["record", "--profile", "--system-wide", "-o", "w", "--"]).arg(program);
    command.uid(65534).gid(65534).stdin(Stdio::null()).output()
}

#[test]
fn a_rate_that_cannot_be_is_refused() {
    if !can_sample() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let output = recorder(folder.path(), &["--profile", "4000000000"]).arg("true").output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("perf_event_max_sample_rate"), "{told}");
    assert!(!output.status.success() && !folder.path().join("t").exists());
    let output = Command::new(env!("CARGO_BIN_EXE_tracewing")).args(["record", "--profile", "true"]).output();
    let told = String::from_utf8(output.unwrap().stderr).unwrap();
    assert!(told.contains("a command comes after --"), "{told}");
    let child = recorder(folder.path(), &["--profile"]).arg("true").spawn().unwrap();
    assert!(ended(folder, child).trace().join("profile/metadata").is_file());
}
