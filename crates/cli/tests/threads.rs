//! `tracewing threads` against the kernel's own account of a thread, `/proc/PID/schedstat`, with a hostile
//! name, with signals, and up to the end of the recording. Most of it needs root.

mod harness;

use harness::{Printed, RunExt};
use std::path::Path;
use std::process::{Command, Output};

/// Works, sleeps, and prints before and after the shell's own number and account: ns on a CPU, ns waiting for
/// one, time slices.
const SCRIPT: &str = "echo $$; cat /proc/$$/schedstat; i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; sleep 0.05; \
                      i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo $$; cat /proc/$$/schedstat";

#[test]
fn running_and_waiting_time_are_those_of_the_kernel() {
    if !rustix::process::geteuid().is_root() {
        tracewing_testing::skip(tracewing_testing::Cause::KernelEvents, "recording kernel events needs root");
        return;
    }
    tracewing_testing::agrees_with_the_kernels(compare_a_shell);
}

/// Whether the times of the shell that runs [`SCRIPT`] are the kernel's.
fn compare_a_shell() -> Result<(), String> {
    let begin = tracewing_testing::stolen();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trace = folder.path().join("trace");
    let recorded =
        harness::tracewing().args(["record", "-o"]).arg(&trace).args(["--", "sh", "-c", SCRIPT]).output();
    let stolen = (tracewing_testing::stolen() - begin).as_nanos() as u64;
    let recorded = recorded.expect("tracewing starts");
    let printed = recorded.text();
    let numbers: Vec<u64> = printed.split_whitespace().map_while(|word| word.parse().ok()).collect();
    let [tid, ran_before, waited_before, _, _, running, waiting, ..] = numbers[..] else {
        panic!("the script printed `{printed}`")
    };
    if !trace.join("kernel").exists() {
        tracewing_testing::skip(
            tracewing_testing::Cause::KernelEvents,
            format_args!("no kernel events were recorded: {}", recorded.notes()),
        );
        return Ok(());
    }

    let output = harness::tracewing().args(["threads", "--format", "json"]).arg(&trace).output();
    let table: serde_json::Value =
        serde_json::from_slice(&output.expect("tracewing starts").stdout).expect("one JSON object");
    let threads = table["threads"].as_array().expect("a list of threads");
    let shell = threads.iter().find(|thread| thread["tid"] == tid).expect("the shell is in the table");
    let figure = |name: &str| shell[name].as_u64().expect("a number");
    let unknown = figure("unknown_ns");
    // The recording begins between the shell's own begin and what it prints first. What it does after it
    // printed, and what is unknown, may be on either side.
    for (name, before, after, stolen) in
        [("running_ns", ran_before, running, stolen), ("ready_ns", waited_before, waiting, 0)]
    {
        let tolerance = after / 20 + 3_000_000 + unknown;
        let range = (after - before).saturating_sub(tolerance)..=after + tolerance + stolen;
        if !range.contains(&figure(name)) {
            return Err(format!("{shell}: the kernel says {before} to {after} ns {name}"));
        }
    }
    // Asleep, or kept from it by others.
    let off = figure("blocked_ns") + figure("ready_ns");
    assert!(off + unknown >= 50_000_000, "{shell}: its child slept for 50 ms");
    Ok(())
}

/// Records a shell's script with the kernel's switches alone; `None`, with the reason, where that cannot be.
fn record_switches(trace: &Path, script: &str) -> Option<Output> {
    let skip = |reason: std::fmt::Arguments<'_>| {
        tracewing_testing::skip(tracewing_testing::Cause::KernelEvents, reason);
    };
    if !rustix::process::geteuid().is_root() {
        skip(format_args!("recording kernel events needs root"));
        return None;
    }
    let recorded = harness::tracewing()
        .args(["record", "-k", "sched_switch", "-o"])
        .arg(trace)
        .args(["--", "sh", "-c", script])
        .ran();
    if !trace.join("kernel").exists() {
        skip(format_args!("no kernel events were recorded: {}", recorded.notes()));
        return None;
    }
    Some(recorded)
}

#[test]
fn the_command_has_a_process_though_no_event_shows_it() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trace = folder.path().join("trace");
    let Some(recorded) = record_switches(&trace, "echo $$; sleep 0.01; sleep 0.01; true") else { return };
    let shell = recorded.text();
    let shell = shell.lines().next().expect("the shell's number").to_owned();
    let listed = harness::tracewing().args(["list", "--super"]).arg(&trace).output();
    let listed = String::from_utf8(listed.expect("tracewing starts").stdout).expect("text");
    let fields: Vec<Vec<&str>> = listed.lines().map(|line| line.split_whitespace().collect()).collect();
    // The columns are the kind, the time, the process and the thread.
    let own: Vec<_> = fields.iter().filter(|fields| fields.get(3) == Some(&shell.as_str())).collect();
    assert!(!own.is_empty(), "{shell}: {listed}");
    assert!(own.iter().all(|fields| fields[2] == shell), "{shell}: {listed}");
}

/// A switch alone does not say which of its threads is recorded. The machine's other threads stay strangers.
#[test]
fn the_threads_of_a_command_are_known_by_its_switches_alone() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trace = folder.path().join("trace");
    let script = "for i in 1 2 3 4 5 6 7 8; do sleep 0.01 & done; wait";
    if record_switches(&trace, script).is_none() {
        return;
    }
    let table = harness::json(&trace, &["threads", "-n", "1000"]);
    let threads = table["threads"].as_array().expect("a list of threads");
    let named = |name: &str| threads.iter().filter(|thread| thread["name"] == name).count();
    assert_eq!((threads.len(), named("sleep"), named("sh")), (9, 8, 1), "{table}");
    assert!(threads.iter().all(|thread| thread["process"] == thread["tid"]), "{table}");
}

/// The kernel records that a signal handler returns, and not that it has.
#[test]
fn a_program_that_a_signal_has_interrupted_is_not_in_a_system_call() {
    if !rustix::process::geteuid().is_root() {
        return tracewing_testing::skip(
            tracewing_testing::Cause::KernelEvents,
            "recording kernel events needs root",
        );
    }
    const SIGNALS: &str = "trap : USR1; (while kill -USR1 $$; do sleep 0.01; done) & \
                           i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; kill $!";
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trace = folder.path().join("trace");
    let recorded =
        harness::tracewing().args(["record", "-o"]).arg(&trace).args(["--", "sh", "-c", SIGNALS]).output();
    if !trace.join("kernel").exists() {
        return tracewing_testing::skip(
            tracewing_testing::Cause::KernelEvents,
            format_args!("no kernel events were recorded: {recorded:?}"),
        );
    }
    let times = |command: &str| -> serde_json::Value {
        let output = harness::tracewing().args([command, "--format", "json"]).arg(&trace).output();
        serde_json::from_slice(&output.expect("tracewing starts").stdout).expect("one JSON object")
    };
    let threads = times("threads");
    let busiest = threads["threads"].as_array().expect("threads");
    let busiest = busiest.iter().max_by_key(|thread| thread["running_ns"].as_u64()).expect("a thread");
    let [running, user] = ["running_ns", "user_ns"].map(|column| busiest[column].as_u64().expect("a time"));
    assert!(user > running / 2, "it computes: {busiest}");
    let breakdown = times("breakdown");
    let returns = breakdown["rows"].as_array().expect("rows").iter();
    let returns: Vec<_> = returns.filter(|row| row["activity"] == "rt_sigreturn").collect();
    assert!(returns.iter().any(|row| row["calls"].as_u64() > Some(2)), "{returns:?}");
    assert!(returns.iter().all(|row| row["running_ns"].is_null()), "{returns:?}");
}

#[test]
fn a_name_cannot_command_the_terminal() {
    if !rustix::process::geteuid().is_root() {
        tracewing_testing::skip(tracewing_testing::Cause::KernelEvents, "recording kernel events needs root");
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = folder.path().join("a\u{1b}[31m\nb");
    tracewing_testing::copy_program("/bin/true", &program);
    let trace = folder.path().join("trace");
    let recorded = harness::tracewing().args(["record", "-o"]).arg(&trace).arg("--").arg(&program).output();
    let recorded = recorded.expect("tracewing starts");
    if !trace.join("kernel").exists() {
        tracewing_testing::skip(
            tracewing_testing::Cause::KernelEvents,
            format_args!("no kernel events were recorded: {}", recorded.notes()),
        );
        return;
    }
    let output = harness::tracewing().arg("threads").arg(&trace).ran();
    let printed = String::from_utf8(output.stdout).expect("text");
    assert!(printed.contains("  a\\u{1b}[31m\\nb  "), "{printed}");
}

/// How many threads have an account, and how many are strangers.
fn known(trace: &Path) -> (usize, u64) {
    let output = harness::tracewing().args(["threads", "--format", "json"]).arg(trace).output();
    let table: serde_json::Value =
        serde_json::from_slice(&output.expect("tracewing starts").stdout).expect("one JSON object");
    (
        table["threads"].as_array().expect("a list of threads").len(),
        table["strangers"].as_u64().expect("a number"),
    )
}

#[test]
fn in_a_recording_of_the_whole_machine_all_threads_are_followed() {
    if !rustix::process::geteuid().is_root() {
        tracewing_testing::skip(tracewing_testing::Cause::KernelEvents, "recording kernel events needs root");
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (trace, part) = (folder.path().join("trace"), folder.path().join("part"));
    let recorded = harness::tracewing()
        .args(["record", "--system-wide", "-k", "sched_*", "-o"])
        .arg(&trace)
        .args(["--", "sh", "-c", "for i in 1 2 3 4 5 6 7 8; do sleep 0.01; done"])
        .output();
    let recorded = recorded.expect("tracewing starts");
    if !trace.join("kernel").exists() {
        tracewing_testing::skip(
            tracewing_testing::Cause::KernelEvents,
            format_args!("no kernel events were recorded: {}", recorded.notes()),
        );
        return;
    }
    assert_eq!(known(&trace).1, 0);
    let extract = harness::tracewing()
        .args(["extract", "-e", "sched_switch", "--where", "(prev_tid & 1) == 0"])
        .args([&trace, &part])
        .output();
    let extract = extract.expect("tracewing starts");
    assert!(extract.status.success(), "{}", extract.notes());
    let (of_part, strangers) = known(&part);
    assert!(strangers > 0, "a part is not of the whole machine");
    let metadata = part.join("kernel/metadata");
    let text = std::fs::read_to_string(&metadata).expect("metadata");
    assert!(text.contains("domain = \"kernel\";"), "{text}");
    let whole = text.replace("domain = \"kernel\";", "domain = \"kernel\"; scope = \"system\";");
    std::fs::write(&metadata, whole).expect("the folder is ours");
    assert_eq!(known(&part), (of_part + usize::try_from(strangers).expect("few"), 0));
}

/// What hangs until the recording ends waits until then, though nothing happens any more; also in a part, and
/// for locks in a snapshot.
#[test]
fn time_lasts_up_to_the_end_of_the_recording() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program =
        tracewing_testing::build(env!("CARGO_TARGET_TMPDIR"), &["-p", "reactivity"]).join("reactivity");
    let run = |command: &mut Command| {
        let output = command.current_dir(folder.path()).succeeds();
        String::from_utf8(output.stdout).expect("text")
    };
    let tracewing = |arguments: &[&str]| run(harness::tracewing().args(arguments));
    let mut record = harness::tracewing();
    record.args(["record", "--no-kernel", "--quiet", "--for", "1", "-o", "t", "--", "sh", "-c"]);
    run(record.args(["\"$0\" --tasks 2 --quantum 1 --messages 1; sleep 2"]).arg(program));
    let reported = std::fs::read_to_string(folder.path().join("t/tracewing.json")).expect("a description");
    let reported: serde_json::Value = serde_json::from_str(&reported).expect("one JSON object");
    let end = tracewing_trace::real_time(&reported, &reported["clock"]["stopped_cycles"])
        .expect("it says when it stopped");
    let begin = tracewing(&["list", "--clock-seconds", "-n", "1", "t"]);
    let (seconds, ns) = begin[1..].split_once(']').expect("a time").0.split_once('.').expect("a fraction");
    let begin: i64 = [seconds, ns].concat().parse().expect("digits");
    let lasts = |trace: &str| -> i64 {
        let table = tracewing(&["threads", "--format", "json", trace]);
        let table: serde_json::Value = serde_json::from_str(&table).expect("one JSON object");
        table["duration_ns"].as_i64().expect("a number")
    };
    let end = end.as_ns();
    assert!((end - begin).abs_diff(lasts("t")) <= 1, "{} ns, from {begin} to {end}", lasts("t"));
    tracewing(&["extract", "--from", "+1us", "t", "part"]);
    assert_eq!(lasts("part"), lasts("t") - 1000);
    tracewing(&["extract", "--to", "+1us", "t", "begin"]);
    assert_eq!(lasts("begin"), 1000);
}

#[test]
fn what_was_not_recorded_is_not_known_and_not_0() {
    if !rustix::process::geteuid().is_root() {
        tracewing_testing::skip(tracewing_testing::Cause::KernelEvents, "recording kernel events needs root");
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trace = folder.path().join("trace");
    let mut record = harness::tracewing();
    record.args(["record", "-k", "sched_*", "-o"]).arg(&trace).args(["--", "sleep", "0.01"]);
    let recorded = record.ran();
    if !trace.join("kernel").exists() {
        tracewing_testing::skip(
            tracewing_testing::Cause::KernelEvents,
            format_args!("no kernel events were recorded: {}", recorded.notes()),
        );
        return;
    }
    let output = harness::tracewing().args(["threads", "--format", "json"]).arg(&trace).output();
    let table: serde_json::Value =
        serde_json::from_slice(&output.expect("tracewing starts").stdout).expect("one JSON object");
    let thread = &table["threads"][0];
    for figure in ["user_ns", "system_ns", "interrupted_ns", "system_calls", "page_faults"] {
        assert!(thread[figure].is_null(), "{figure}: {thread}");
    }
    for figure in ["running_ns", "switches", "wakeups"] {
        assert!(thread[figure].is_u64(), "{figure}: {thread}");
    }
}
