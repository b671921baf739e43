//! `tracewing record --profile` and `tracewing profile`: C programs that spend their time as their source
//! says, with frame pointers and without, compared with `perf` and the kernel's scheduler.

mod debug_file;
mod ends;
#[path = "../harness/mod.rs"]
mod harness;
mod jit;
mod kernel;
#[path = "../kernel_common/mod.rs"]
mod kernel_common;
#[path = "../recorded/mod.rs"]
mod recorded;

use harness::{Json, Printed, RunExt, of};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use tracewing_testing::{am_root, stolen};

use recorded::{Recording, ended, record, recorder};
use serde_json::Value;

const FRAME_POINTERS: &[&str] = &["-fno-omit-frame-pointer"];

/// Compiles `crates/profile/tests/programs/busy.c`; `None` where there is no compiler.
fn busy(folder: &Path, options: &[&str]) -> Option<PathBuf> {
    compiled(folder, "busy", options)
}

/// The same of another program there.
fn compiled(folder: &Path, name: &str, options: &[&str]) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../profile/tests/programs");
    let source = source.join(name).with_extension("c");
    let program = folder.join(name);
    match Command::new("gcc").args(["-O1", "-pthread", "-o"]).arg(&program).arg(source).args(options).output()
    {
        Ok(output) => {
            assert!(output.status.success(), "{}", output.notes());
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
    let can = setting.trim().parse::<i32>().is_ok_and(|setting| am_root() || setting <= 2);
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

fn json(options: &[&str], trace: &Path) -> Value {
    let output = of(trace, &[&["profile", "--format", "json"], options].concat()).ran();
    assert!(output.status.success(), "{}", output.notes());
    output.json()
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
    by_function(&serde_json::json!({ "profile": outside }), "self_samples")
}

/// Whether a part of samples is near to what it should be: five times the deviation that chance gives it.
fn is_about(part: u64, of: u64, share: f64) -> bool {
    let deviation = (share * (1.0 - share) / of as f64).sqrt();
    (part as f64 / of as f64 - share).abs() < 5.0 * deviation + 0.01
}

/// What `profile` says of the program, the number of samples, and those by function: as many in `heavy` and
/// in `light` as the source says.
fn heavy_and_light(recording: &Recording) -> (Value, u64, BTreeMap<String, u64>) {
    assert_eq!(recording.lost(), 0);
    let found = json(&[], &recording.trace());
    let (all, total) = (found["samples"].as_u64().unwrap(), by_function(&found, "total_samples"));
    assert!(all > 50, "{all} samples");
    assert!(is_about(total["heavy"], all, 0.75), "{total:?} of {all}");
    assert!(is_about(total["light"], all, 0.25), "{total:?} of {all}");
    (found, all, total)
}

/// gcc makes no frames at `-O1`; the source says which function calls which.
#[test]
fn callers_are_found_in_copies_of_stacks() {
    let options = ["--call-graph", "dwarf"];
    let Some((_program, recording)) = profiled(&options, &["-fomit-frame-pointer"], &["1", "2"]) else {
        return;
    };
    let (found, all, total) = heavy_and_light(&recording);
    for function in ["spin", "work"] {
        assert!(total[function] * 100 >= all * 95, "{function}: {total:?} of {all}");
    }
    // The other thread begins in the C library.
    assert!(is_about(total["main"], all, 0.5), "{total:?} of {all}");
    // Also in the vdso, in which the program reads the clock now and then.
    let cut = found["cut_chains"].as_u64().unwrap();
    assert!(cut * 100 <= all, "{cut} of {all} are cut");
}

#[test]
fn samples_are_where_the_time_goes() {
    let before = stolen();
    let Some((_program, recording)) = profiled(&[], FRAME_POINTERS, &["1"]) else { return };
    let (found, all, total) = heavy_and_light(&recording);
    for function in ["spin", "work", "main"] {
        assert!(total[function] * 100 >= all * 95, "{function}: {total:?} of {all}");
    }
    let is_program = |row: &Value| row["program"].as_str().is_some_and(|path| path.ends_with("/busy"));
    assert!(rows(&found, "profile").iter().all(is_program), "{found}");
    assert_eq!(by_function(&found, "self_samples").values().sum::<u64>(), all);
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
fn without_frame_pointers_chains_are_cut_and_a_note_says_so() {
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
    let shown = of(&recording.trace(), &["profile"]).ran();
    let shown = shown.text();
    assert!(shown.contains(&format!("{cut} of {chains} call chains of programs are cut short")), "{shown}");
}

/// A recording of `crates/profile/tests/programs/inlined.c`.
fn inlined(options: &[&str]) -> Option<(tempfile::TempDir, Recording)> {
    let folder = tempfile::tempdir().unwrap();
    if !can_sample() {
        return None;
    }
    let program = compiled(folder.path(), "inlined", options)?;
    let recording = record(&["--profile", "499"], &[program.to_str().unwrap()]);
    Some((folder, recording))
}

/// Whether these samples are those of half of the program: 40 % at least of what is outside of the kernel.
fn is_half(samples: u64, own: &BTreeMap<String, u64>) -> bool {
    samples * 10 > own.values().sum::<u64>() * 4
}

#[test]
fn inlined_functions_are_those_that_their_code_is_of() {
    let options = ["-g", "-fno-omit-frame-pointer"];
    let Some((_program, recording)) = inlined(&options) else { return };
    let found = json(&[], &recording.trace());
    let (own, total) = (outside_kernel(&found), by_function(&found, "total_samples"));
    assert!(is_half(own["innermost (inlined)"], &own), "{own:?}");
    assert!(own.get("exported").is_none_or(|samples| !is_half(*samples, &own)), "{own:?}");
    for function in ["middle (inlined)", "exported"] {
        assert!(total[function] >= own["innermost (inlined)"], "{function}: {total:?}");
    }
    for row in rows(&found, "profile") {
        let is_marked = row["function"].as_str().unwrap().ends_with(" (inlined)");
        assert_eq!(row["kind"] == "inlined", is_marked, "{row}");
    }
    let whole = outside_kernel(&json(&["--no-inline"], &recording.trace()));
    assert!(is_half(whole["exported"], &whole), "{whole:?}");
    assert!(!whole.keys().any(|name| name.contains("(inlined)")), "{whole:?}");
}

#[test]
fn code_without_a_symbol_has_the_name_before_it_and_says_so() {
    let options = ["-rdynamic", "-s", "-fno-omit-frame-pointer"];
    let Some((_program, recording)) = inlined(&options) else { return };
    let own = outside_kernel(&json(&[], &recording.trace()));
    let near: u64 = own.iter().filter(|(name, _)| name.starts_with("near ")).map(|(_, own)| own).sum();
    assert!(is_half(own["exported"], &own) && is_half(near, &own), "{own:?}");
}

#[test]
fn threads_are_distinguished() {
    let Some((_program, recording)) = profiled(&[], FRAME_POINTERS, &["0.4", "3"]) else { return };
    let threads: BTreeSet<i64> = recording.stdout.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(threads.len(), 3);
    let found = json(&["--by", "thread"], &recording.trace());
    let sampled: BTreeSet<i64> =
        rows(&found, "profile").iter().map(|row| row["tid"].as_i64().unwrap()).collect();
    assert_eq!(sampled, threads);
    let names: BTreeSet<_> = rows(&found, "profile").iter().map(|row| row["thread_name"].as_str()).collect();
    assert_eq!(names, BTreeSet::from([Some("busy")]));
    let of_each = threads.iter().map(|tid| {
        let found = json(&["--tid", &tid.to_string()], &recording.trace());
        assert!(
            by_function(&found, "total_samples").contains_key("heavy"),
            "mappings are the whole process'"
        );
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
    let own = by_function(&json(&["--from", "+0.5s"], &trace), "self_samples");
    assert!(own.contains_key("spin"), "{own:?}");
    let tree = json(&["--tree"], &trace);
    let deepest = rows(&tree, "tree").iter().find(|row| row["function"] == "spin").unwrap();
    assert!(deepest["depth"].as_u64().unwrap() >= 3, "{tree}");
    let callers = json(&["--tree=callers"], &trace);
    assert_eq!(rows(&callers, "tree")[0]["function"], "spin");
    let graph = recording.folder.path().join("graph.svg");
    let drawn = of(&trace, &["profile", "--flame-graph", graph.to_str().unwrap()]).ran();
    assert!(drawn.status.success(), "{}", drawn.notes());
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

/// The events that describe code are taken away, one kind at a time: what they showed is unknown, and the
/// rest is as before.
#[test]
fn what_explains_samples_is_named_where_it_is_missing() {
    let Some((program, _)) = profiled(&[], FRAME_POINTERS, &["0"]) else { return };
    // The shell makes a process for the program, which begins with the shell's file.
    let script = format!("{0} 0.3; {0} 0.2", program.path().join("busy").display());
    let recording = record(&["--profile", "499"], &["sh", "-c", &script]);
    let found = json(&["--least", "0"], &recording.trace());
    let whole = by_function(&found, "self_samples");
    assert!(whole["spin"] > 0 && found["cut_chains"].is_u64(), "{found}");
    let all: u64 = whole.values().sum();
    for (events, says) in [
        ("profile:mapping", "mappings of files"),
        ("profile:kernel_symbol", "functions of the kernel"),
        ("profile:thread", "names and programs of threads"),
        ("profile:fork", "new processes"),
    ] {
        let part = recording.folder.path().join("part");
        let extracted =
            of(&part, &["convert", "--to", "ctf1", "--exclude", events, recording.trace().to_str().unwrap()])
                .ran();
        assert!(extracted.status.success(), "{extracted:?}");
        let said = String::from_utf8(of(&part, &["profile", "--format", "json"]).ran().stderr).unwrap();
        assert!(said.contains(says), "{events}: {said}");
        let some = json(&["--least", "0"], &part);
        let counts = by_function(&some, "self_samples");
        assert_eq!(counts.values().sum::<u64>(), all, "{events}: samples are left out");
        for (function, count) in counts.iter().filter(|(function, _)| !function.starts_with('[')) {
            let most = whole.get(function).copied().unwrap_or(0);
            assert!(*count <= most, "{events}: {count} in {function} of {whole:?}");
        }
        let is_kernel = events == "profile:kernel_symbol";
        assert_eq!(counts.contains_key("spin"), events != "profile:mapping", "{events}: {counts:?}");
        assert_eq!(some["cut_chains"].is_null(), events == "profile:mapping");
        assert!(rows(&some, "profile").iter().all(|row| row["program"].is_null() != is_kernel), "{some}");
        fs::remove_dir_all(&part).unwrap();
    }
}
