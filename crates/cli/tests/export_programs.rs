//! `tracewing export` of programs that were never instrumented: their locks, functions, probes, samples and
//! counters are in each format as in the tables of `tracewing locks`, `functions` and `profile`. As root with
//! the events of the kernel, else without.

mod export_formats;
mod harness;
mod recorded;

use harness::{Json, Printed, RunExt, traceable};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use export_formats::{Shown, chrome, paje, perfetto};
use recorded::build;
use serde_json::Value;

fn tracewing(folder: &Path, arguments: &[&str]) -> Output {
    harness::tracewing().current_dir(folder).args(arguments).succeeds()
}

fn json(folder: &Path, arguments: &[&str]) -> Value {
    tracewing(folder, &[arguments, &["--format", "json", "trace"]].concat()).json()
}

/// Records a program of a crate's tests, built with `options`; nothing where there is no compiler.
fn recorded(program: &str, options: &[&str], how: &[&str], arguments: &[&str]) -> Option<tempfile::TempDir> {
    build(&["-p", "tracewing-preload"]);
    let folder = tempfile::tempdir().expect("a folder");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(program);
    let mut gcc = Command::new("gcc");
    gcc.args(["-O1", "-g", "-pthread", "-fno-omit-frame-pointer", "-o", "program"]).args(options).arg(source);
    match gcc.current_dir(folder.path()).output() {
        Ok(output) => assert!(output.status.success(), "{}", output.notes()),
        Err(_) => {
            tracewing_testing::skip(tracewing_testing::Cause::Program("gcc"), "gcc is not installed");
            return None;
        }
    }
    let mut record = harness::tracewing();
    record.current_dir(folder.path()).args(["record", "-q", "-o", "trace"]).args(how);
    record.args(["--", "./program"]).args(arguments);
    record.stdout(Stdio::null()).succeeds();
    Some(folder)
}

/// Exports in all formats that can be read here, which show the same.
fn export(folder: &Path) -> Shown {
    let export = |format: &str| -> PathBuf {
        tracewing(folder, &["export", "trace", "--format", format, "-o", format]);
        folder.join(format)
    };
    let is_there = |program: &str| {
        let is_there = Command::new(program).arg("--version").output().is_ok();
        if !is_there {
            tracewing_testing::skip(
                tracewing_testing::Cause::Program(program),
                format_args!("{program} is not installed"),
            );
        }
        is_there
    };
    let json = chrome(&export("chrome"));
    if is_there("pj_dump") {
        // It keeps values in 32 bits.
        let round = |value: &u64| (*value as f32) as u64;
        let counters = json.counters.iter().map(|(name, value)| (name.clone(), round(value))).collect();
        let mut found = paje(&export("paje"));
        found.counters.values_mut().for_each(|value| *value = round(value));
        assert_eq!(found, Shown { counters, ..json.clone() });
    }
    if is_there("protoc") {
        assert_eq!(perfetto(&export("perfetto")), json);
    }
    json
}

fn rows<'v>(table: &'v Value, name: &str) -> impl Iterator<Item = &'v Value> {
    table[name].as_array().expect("a list").iter()
}

/// Sums of what parts with this label's begin say, by a part of it.
fn sums(shown: &Shown, label: &[&str], key: impl Fn(&str) -> Option<String>) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for ((line, name), ns) in &shown.parts {
        if let (true, Some(key)) = (label.iter().any(|label| line.starts_with(label)), key(name)) {
            *sums.entry(key).or_default() += ns;
        }
    }
    sums.retain(|_, ns| *ns > 0);
    sums
}

#[test]
fn locks_and_functions_have_the_times_of_their_tables() {
    let how = ["--locks", "--functions"];
    let traceable = traceable();
    let kernel: &[&str] = if traceable { &[] } else { &["--no-kernel"] };
    let options = ["-finstrument-functions"];
    let Some(folder) = recorded("preload/tests/programs/truth.c", &options, &[&how, kernel].concat(), &[])
    else {
        return;
    };
    let shown = export(folder.path());

    // Threads without a line may wait for the kernel's own locks, too: an idle thread in an interrupt.
    let is_programs = |lock: &str| !lock.starts_with("0xffff");
    let table = json(folder.path(), &["locks"]);
    let wanted = |column: &str| {
        let mut sums = BTreeMap::new();
        for row in rows(&table, "locks") {
            let lock = row["lock"].as_str().expect("an address").to_owned();
            *sums.entry(lock).or_default() += row[column].as_u64().unwrap_or(0);
        }
        sums.retain(|lock, ns| *ns > 0 && is_programs(lock));
        sums
    };
    let address = |name: &str| Some(name.rsplit(' ').next()?.to_owned()).filter(|lock| is_programs(lock));
    let lines = ["locks of ", "more locks "];
    let held = sums(&shown, &lines, |name| address(name).filter(|_| !name.starts_with("waits for ")));
    let waited = sums(&shown, &lines, |name| address(name).filter(|_| name.starts_with("waits for ")));
    assert!(held.len() > 3 && waited.len() > 3, "{held:?} {waited:?}");
    assert_eq!(held, wanted("hold_ns"));
    assert_eq!(waited, wanted("wait_ns"));

    let table = json(folder.path(), &["functions"]);
    let row =
        |row: &Value| (row["function"].as_str().unwrap().to_owned(), row["total_ns"].as_u64().unwrap_or(0));
    let wanted: BTreeMap<_, _> = rows(&table, "functions").map(row).filter(|(_, ns)| *ns > 0).collect();
    assert!(wanted.contains_key("waiter") && wanted.contains_key("pause_ns"), "{wanted:?}");
    assert_eq!(sums(&shown, &["functions of "], |name| Some(name.to_owned())), wanted);

    let table = json(folder.path(), &["threads", "--by", "thread"]);
    for row in rows(&table, "threads") {
        let tid = row["tid"].to_string();
        let of = |state| shown.times.get(&tid).and_then(|times| times.get(state)).copied().unwrap_or(0);
        for state in ["running_ns", "ready_ns", "blocked_ns", "unknown_ns"] {
            assert_eq!(row[state].as_u64(), Some(of(state)), "{state} of {tid}");
        }
    }
    if traceable {
        let file = fs::read_to_string(folder.path().join("chrome")).expect("a file");
        for state in ["spinning on spin", "blocked on mutex", "blocked on barrier"] {
            assert!(file.contains(&format!("\"name\":\"{state}\"")), "{state}");
        }
    }
}

#[test]
fn samples_and_counters_are_those_of_profile() {
    let setting = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    let traceable = traceable();
    if !setting.trim().parse::<i32>().is_ok_and(|setting| traceable || setting <= 2) {
        return tracewing_testing::skip(
            tracewing_testing::Cause::Root,
            format_args!("perf_event_paranoid is {setting:?}"),
        );
    }
    let kernel: &[&str] = if traceable { &["-k", "sched_switch"] } else { &["--no-kernel"] };
    let Some(folder) =
        recorded("profile/tests/programs/busy.c", &[], &[&["--profile"], kernel].concat(), &[])
    else {
        return;
    };
    let shown = export(folder.path());
    // The export has functions, not what was inlined into them.
    let table = json(folder.path(), &["profile", "--no-inline"]);
    let mut wanted: BTreeMap<_, u64> = BTreeMap::new();
    for row in rows(&table, "profile") {
        *wanted.entry(row["function"].as_str().unwrap().to_owned()).or_default() +=
            row["self_samples"].as_u64().unwrap();
    }
    wanted.retain(|_, own| *own > 0);
    let mut found: BTreeMap<_, u64> = BTreeMap::new();
    for (chain, samples) in &shown.samples {
        *found.entry(chain.split(" < ").next().unwrap().to_owned()).or_default() += samples;
    }
    assert!(found["spin"] > 10, "{found:?}");
    assert_eq!(found, wanted);
    assert!(shown.samples.keys().any(|chain| chain.contains("spin < heavy < work < main")));

    let table = json(folder.path(), &["profile", "--counters"]);
    let row = |row: &Value| (row["counter"].as_str().unwrap().to_owned(), row["value"].as_u64().unwrap());
    let wanted: BTreeMap<_, _> = rows(&table, "counters").map(row).collect();
    assert!(wanted["task_clock"] > 0);
    assert_eq!(shown.counters, wanted);
}

#[test]
fn probes_of_begin_and_return_are_slices_and_others_events() {
    if !traceable() {
        return;
    }
    let how =
        ["--probe", "./program:serve", "--probe", "./program:serve%return", "--probe", "libc.so.6:getppid"];
    let Some(folder) =
        recorded("programs/tests/programs/shop.c", &[], &[&["--no-kernel"], &how[..]].concat(), &["200"])
    else {
        return;
    };
    let shown = export(folder.path());
    let slices = sums(&shown, &["functions of "], |name| Some(name.to_owned()));
    let table = json(folder.path(), &["functions"]);
    let serve = rows(&table, "functions").find(|row| row["function"] == "program:serve").expect("serve");
    assert_eq!(slices, BTreeMap::from([("program:serve".to_owned(), serve["total_ns"].as_u64().unwrap())]));
    assert_eq!(shown.events.keys().collect::<Vec<_>>(), ["libc.so.6:getppid"]);
}
