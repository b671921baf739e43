//! `tracewing record --functions` and `tracewing functions`: what C++ programs say that they called, and what
//! uftrace says, against what was recorded.

mod kernel_common;
mod recorded;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use recorded::{Recording, build, record, recorder};
use serde_json::Value;

/// How programs are built so that functions tell of themselves.
const BUILDS: [(&str, &[&str]); 4] = [
    ("g++", &["-finstrument-functions"]),
    ("g++", &["-pg", "-mfentry"]),
    ("clang++", &["-finstrument-functions"]),
    ("clang++", &["-pg", "-mfentry"]),
];

/// Functions of the program that are left with others of the same thread above them, since they change
/// stacks.
const OF_STACKS: [&str; 3] = ["coroutine", "yields", "resumes"];

/// Compiles the C++ program, and builds the library; `None` where there is no such compiler.
fn program(folder: &Path, compiler: &str, options: &[&str]) -> Option<PathBuf> {
    program_of("functions.cc", folder, compiler, options)
}

/// The same of another source.
fn program_of(source: &str, folder: &Path, compiler: &str, options: &[&str]) -> Option<PathBuf> {
    let optimised: &[&str] = if cfg!(debug_assertions) { &[] } else { &["--release"] };
    build(&[&["-p", "tracewing-preload"], optimised].concat());
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../preload/tests/programs").join(source);
    let program = folder.join("functions");
    let mut command = Command::new(compiler);
    command.args(["-O2", "-w", "-pthread", "-o"]).arg(&program).arg(source).args(options);
    match command.output() {
        Ok(output) if output.status.success() => Some(program),
        Ok(output) if options.is_empty() => panic!("{}", String::from_utf8_lossy(&output.stderr)),
        _ => {
            tracewing_testing::skip(
                tracewing_testing::Cause::Listed("compiler option"),
                format_args!("{compiler} cannot make this with {options:?}"),
            );
            None
        }
    }
}

/// How often functions were called, by their names: as the program says.
fn told(stdout: &str) -> BTreeMap<String, u64> {
    let line =
        |line: &str| line.split_once(' ').map(|(name, count)| (name.to_owned(), count.parse().unwrap()));
    stdout.lines().filter_map(line).collect()
}

/// `tracewing functions` of a recording.
fn functions(recording: &Recording, options: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tracewing"));
    let output = command.arg("functions").arg(recording.trace()).args(options).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

fn text(recording: &Recording, options: &[&str]) -> String {
    String::from_utf8(functions(recording, options).stdout).unwrap()
}

fn json(recording: &Recording, options: &[&str]) -> Value {
    serde_json::from_slice(&functions(recording, &[options, &["--format", "json"]].concat()).stdout).unwrap()
}

/// The rows of a table by function.
fn rows(table: &Value) -> BTreeMap<String, Value> {
    let row = |row: &Value| {
        let name = row["function"].as_str().unwrap();
        (name.split('(').next().unwrap().to_owned(), row.clone())
    };
    table["functions"].as_array().unwrap().iter().map(row).collect()
}

/// How often functions were called, as the recording has it.
fn counted(rows: &BTreeMap<String, Value>) -> BTreeMap<String, u64> {
    rows.iter().map(|(name, row)| (name.clone(), row["calls"].as_u64().unwrap())).collect()
}

#[test]
fn every_call_is_counted_however_it_is_left() {
    for (compiler, options) in BUILDS {
        let folder = tempfile::tempdir().unwrap();
        let Some(program) = program(folder.path(), compiler, options) else { continue };
        let alone = Command::new(&program).arg("all").current_dir(folder.path()).output().unwrap();
        let recording = record(&["--functions"], &[program.as_os_str(), "all".as_ref()]);
        let what = format!("{compiler} {options:?}");
        assert_eq!(
            recording.stdout,
            String::from_utf8(alone.stdout).unwrap(),
            "{what}: what the program does"
        );
        let table = json(&recording, &[]);
        let rows = rows(&table);
        let mut found = counted(&rows);
        let mut told = told(&recording.stdout);
        assert!(told.len() > 20, "{told:?}");
        // Children of `vfork` run on their parent's thread block, so their events are counted lost. They have
        // no other functions.
        let in_vforked = told.remove("before_exec").unwrap();
        assert_eq!(recording.reasons(), [("thread not protected", in_vforked)].into(), "{what}");
        found.retain(|name, _| told.contains_key(name)); // there are functions of headers, too
        assert_eq!(found, told, "{what}");
        let count = |member: &str| table[member].as_u64().unwrap();
        assert_eq!(count("not_followed"), 0);
        // Only a stack that is left in the middle of functions has ends without begins, each time.
        let most = told["yields"] + told["coroutine"];
        assert!(count("unmatched_ends") <= most, "{what}: {}", count("unmatched_ends"));
        if options.contains(&"-mfentry") {
            // Jumps and exceptions are told.
            let most: u64 = OF_STACKS.iter().map(|name| told[*name]).sum();
            assert!(count("left") <= most, "{what}: {} were left", count("left"));
        }
        check_times(&rows, &what);
        check_graph(&json(&recording, &["--graph"]), &rows, &what);
    }
}

/// A function that waits for 20 ms takes no less, and the average of calls lies between the shortest and the
/// longest.
fn check_times(rows: &BTreeMap<String, Value>, what: &str) {
    assert!(rows["waits"]["total_ns"].as_u64().unwrap() >= 20_000_000, "{what}");
    for (name, row) in rows {
        let number = |column: &str| row[column].as_u64().unwrap();
        for part in ["total", "self"] {
            let [avg, min, max] = ["avg", "min", "max"].map(|figure| number(&format!("{part}_{figure}_ns")));
            assert!(min <= avg && avg <= max, "{what}: {name}: {row}");
        }
        assert!(
            number("self_ns") <= number("total_avg_ns") * number("calls") + number("calls"),
            "{name}: {row}"
        );
    }
}

/// The graph has the calls of the table, and what is called lies within who called it.
fn check_graph(graph: &Value, rows: &BTreeMap<String, Value>, what: &str) {
    let mut calls: BTreeMap<String, u64> = BTreeMap::new();
    let mut around: Vec<(String, u64)> = Vec::new();
    let mut callers: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for node in graph["functions"].as_array().unwrap() {
        let name = node["function"].as_str().unwrap().split('(').next().unwrap().to_owned();
        *calls.entry(name.clone()).or_default() += node["calls"].as_u64().unwrap();
        around.truncate(node["depth"].as_u64().unwrap() as usize);
        let total = node["total_ns"].as_u64().unwrap();
        if let Some((caller, outer)) = around.last() {
            assert!(total <= *outer, "{what}: {name} in {caller}");
            callers.entry(name.clone()).or_default().push(caller.clone());
        }
        around.push((name, total));
    }
    assert_eq!(calls, counted(rows), "{what}");
    for (function, caller) in [("works", "handler"), ("called", "calls"), ("recursive", "recursive")] {
        assert!(callers[function].iter().all(|found| found == caller), "{what}: {function}: {callers:?}");
    }
}

#[test]
fn uftrace_counts_the_same() {
    for (compiler, options) in BUILDS {
        let folder = tempfile::tempdir().unwrap();
        let Some(program) = program(folder.path(), compiler, options) else { continue };
        let uftrace = |arguments: &[&str]| {
            let mut command = Command::new("uftrace");
            command.args(arguments).args(["-d", "data"]).current_dir(folder.path());
            command
        };
        let Ok(output) = uftrace(&["record", "--no-libcall"]).arg(&program).output() else {
            return tracewing_testing::skip(
                tracewing_testing::Cause::Program("uftrace"),
                "uftrace is not installed",
            );
        };
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let report = uftrace(&["report", "-f", "call", "--demangle=full"]).output().unwrap();
        let report = String::from_utf8(report.stdout).unwrap();
        let line = |line: &str| {
            let (count, name) = line.trim().split_once(char::is_whitespace)?;
            Some((name.trim().split('(').next()?.to_owned(), count.parse().ok()?))
        };
        let mut theirs: BTreeMap<String, u64> = report.lines().filter_map(line).collect();
        theirs.retain(|name, _| !name.starts_with("linux:"));
        let ours = counted(&rows(&json(&record(&["--functions"], &[&program]), &[])));
        assert!(ours.len() >= 6);
        assert_eq!(ours, theirs, "{compiler} {options:?}: {report}");
    }
}

#[test]
fn only_functions_that_are_chosen_are_recorded() {
    for (compiler, options) in BUILDS {
        let folder = tempfile::tempdir().unwrap();
        let Some(program) = program(folder.path(), compiler, options) else { continue };
        let chosen = ["--functions", "inn?r", "--functions", "call*", "--functions", "arguments(int*"];
        let recording = record(&chosen, &[&program]);
        let mut told = told(&recording.stdout);
        told.retain(|name, _| ["inner", "calls", "called", "arguments"].contains(&name.as_str()));
        assert_eq!(told.len(), 4);
        assert_eq!(counted(&rows(&json(&recording, &[]))), told, "{compiler} {options:?}");
        assert!(recording.events().iter().all(|event| !event.name.starts_with("lock:")));
        assert_eq!(recording.summary["notes"], Value::Array(Vec::new()), "{compiler} {options:?}");
        let without = record(&["--functions", "--exclude", "function:exit"], &[&program]);
        assert!(without.events().iter().all(|event| event.name != "function:exit"));
    }
}

#[test]
fn names_of_cpp_are_as_in_the_source() {
    for (compiler, options) in BUILDS {
        let folder = tempfile::tempdir().unwrap();
        let Some(program) = program_of("names.cc", folder.path(), compiler, &[options, &["-O1"]].concat())
        else {
            continue;
        };
        for (pattern, chosen) in [
            ("twice*", &["double twice<double>(double)", "int twice<int>(int)"][..]),
            ("twice<int>", &["int twice<int>(int)"]),
            ("(anonymous namespace)::hidden", &["(anonymous namespace)::hidden(int)"]),
            ("*hidden", &["(anonymous namespace)::hidden(int)"]),
            ("*operator()", &["Shop::operator()(int)", "main::{lambda(int)#1}::operator()(int) const"]),
            ("Shop::operator int", &["Shop::operator int() const"]),
            ("Shop::price", &["Shop::price() const"]),
            ("int*", &[]),
        ] {
            let recording = record(&["--functions", pattern], &[&program]);
            let what = format!("{compiler} {options:?} {pattern}");
            let table = json(&recording, &[]);
            // clang numbers lambdas.
            let name = |row: &Value| row["function"].as_str().unwrap().replace("$_0", "{lambda(int)#1}");
            let names: BTreeSet<String> = table["functions"].as_array().unwrap().iter().map(name).collect();
            assert_eq!(names, chosen.iter().map(|&name| name.to_owned()).collect(), "{what}");
            let is_told = !recording.summary["notes"].as_array().unwrap().is_empty();
            assert_eq!(is_told, chosen.is_empty(), "{what}");
        }
    }
}

#[test]
fn copies_that_gcc_has_made_are_asked_for_by_their_functions_name() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program_of("clones.c", folder.path(), "gcc", &["-pg", "-mfentry"]) else { return };
    let names = Command::new("nm").arg(&program).output().unwrap();
    let names = String::from_utf8(names.stdout).unwrap();
    let Some(copy) = names.split_whitespace().find(|name| name.starts_with("scaled.")) else {
        return tracewing_testing::skip(
            tracewing_testing::Cause::Listed("compiler option"),
            "this gcc makes no copy",
        );
    };
    for pattern in ["scaled", copy] {
        let recording = record(&["--functions", pattern], &[&program]);
        let found = counted(&rows(&json(&recording, &[])));
        assert_eq!(found, BTreeMap::from([(copy.to_owned(), 2)]), "{pattern}");
    }
}

/// gcc gives the addresses of libstdc++'s own for functions of its headers.
#[test]
fn functions_of_libraries_without_hooks_are_chosen_too() {
    let folder = tempfile::tempdir().unwrap();
    let options = ["-finstrument-functions", "-O1"];
    let Some(program) = program_of("names.cc", folder.path(), "g++", &options) else { return };
    let names = |pattern: &str| {
        let recording = record(&["--functions", pattern], &[&program]);
        let names: BTreeSet<String> = rows(&json(&recording, &[])).into_keys().collect();
        names
    };
    let all = names("*");
    let is_of_string = |name: &&String| name.trim_start_matches("void ").starts_with("std::__cxx11::");
    let strings: BTreeSet<String> = all.iter().filter(is_of_string).cloned().collect();
    assert!(!strings.is_empty(), "{all:?}");
    assert_eq!(names("std::__cxx11::*"), strings);
    assert_eq!(names("nosuch"), BTreeSet::new());
}

#[test]
fn patterns_of_which_nothing_was_called_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(folder.path(), "g++", &["-finstrument-functions"]) else { return };
    for options in [&[][..], &["-e", "*"]] {
        let recording = record(&[options, &["--functions", "nowhere*"]].concat(), &[&program]);
        let notes = "no function that was called matched --functions 'nowhere*'";
        assert_eq!(recording.summary["notes"], Value::Array(vec![notes.into()]), "{options:?}");
    }
    // Here nobody knows.
    for options in [&["--exclude", "function:*"][..], &["--sub-buffer-size", "4K", "--sub-buffers", "2"]] {
        let recording =
            record(&[options, &["--functions", "inner"]].concat(), &[program.as_os_str(), "long".as_ref()]);
        assert_eq!(recording.summary["notes"], Value::Array(Vec::new()), "{options:?}");
    }
}

#[test]
fn too_many_functions_within_each_other_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(folder.path(), "g++", &["-pg", "-mfentry"]) else { return };
    let recording =
        record(&["--functions=recursive", "--sub-buffers", "64"], &[program.as_os_str(), "deep".as_ref()]);
    let table = json(&recording, &[]);
    let found = counted(&rows(&table))["recursive"];
    let not_followed = table["not_followed"].as_u64().unwrap();
    assert!(not_followed > 0 && found > 60_000, "{table}");
    assert_eq!(found + not_followed, told(&recording.stdout)["recursive"]);
}

#[test]
fn a_flight_recorder_knows_names() {
    for (compiler, options) in BUILDS {
        let folder = tempfile::tempdir().unwrap();
        let Some(program) = program(folder.path(), compiler, options) else { continue };
        let small = ["--functions", "--flight-recorder", "--sub-buffer-size", "64K", "--sub-buffers", "4"];
        let recorded = recorder(folder.path(), &small).arg(&program).arg("long").output().unwrap();
        assert!(recorded.status.success(), "{}", String::from_utf8_lossy(&recorded.stderr));
        let mut functions = Command::new(env!("CARGO_BIN_EXE_tracewing"));
        functions.args(["functions", "t/snapshot-1", "--format", "json"]).current_dir(folder.path());
        let found = counted(&rows(&serde_json::from_slice(&functions.output().unwrap().stdout).unwrap()));
        assert!(found["inner"] > 1000 && found["inner"] < 150_000, "{compiler} {options:?}: {found:?}");
    }
}

#[test]
fn replay_has_each_call_where_it_was_made() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(folder.path(), "g++", &["-finstrument-functions"]) else { return };
    let recording = record(&["--functions"], &[&program]);
    let replay = text(&recording, &["--replay", "-n", "12"]);
    let lines: Vec<String> = replay.lines().skip(1).map(|line| line.chars().skip(22).collect()).collect();
    let one =
        ["outer() {", "  inner();", "  inner();", "  inner();", "} /* outer */", "calls() {", "  called();"];
    assert_eq!(lines, [&one[..], &["} /* calls */"], &one[..4]].concat(), "{replay}");
    let has_duration: Vec<bool> =
        replay.lines().skip(1).map(|line| line.chars().take(10).any(|letter| letter != ' ')).collect();
    assert_eq!(has_duration[..8], [false, true, true, true, true, false, true, true]);
    let whole = text(&recording, &["--replay"]);
    let count = |text: &str| whole.lines().filter(|line| line.ends_with(text)).count();
    assert_eq!((count("recursive() {"), count("recursive();"), count("} /* recursive */")), (20, 1, 20));
}

#[test]
fn recordings_are_compared_and_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(folder.path(), "g++", &["-finstrument-functions"]) else { return };
    let before = record(&["--functions=outer"], &[&program]);
    let after = record(&["--functions"], &[&program]);
    let other = after.trace();
    let difference = rows(&json(&before, &["--diff", other.to_str().unwrap()]));
    let calls = |name: &str| {
        ["calls", "calls_there", "calls_difference"].map(|column| difference[name][column].as_i64().unwrap())
    };
    assert_eq!(calls("outer"), [10, 10, 0]);
    assert_eq!(calls("inner"), [0, 30, 30]);
    let row = &difference["inner"];
    assert_eq!(row["total_ns"], 0);
    assert_eq!(row["total_there_ns"], row["total_difference_ns"]);

    let drawn = folder.path().join("graph.svg");
    text(&after, &["--flame-graph", drawn.to_str().unwrap()]);
    let svg = fs::read_to_string(drawn).unwrap();
    assert!(
        svg.starts_with("<?xml") && svg.contains("<title>outer(int) (") && svg.contains("inner(int)"),
        "{svg:.300}"
    );
}

#[test]
fn programs_whose_functions_cannot_be_seen_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let said = |options: &[&str], recorded: &[&str]| {
        let program = program(folder.path(), "g++", options)?;
        let recorder = recorder(folder.path(), recorded).arg(&program).stdin(Stdio::null()).output().unwrap();
        fs::remove_dir_all(folder.path().join("t")).unwrap();
        assert!(recorder.status.success());
        Some(String::from_utf8(recorder.stderr).unwrap())
    };
    for (options, text) in [
        (&[][..], "has no instrumented functions of its own"),
        (&["-pg"], "add -mfentry"),
        (&["-static", "-finstrument-functions"], "is statically linked"),
    ] {
        let Some(told) = said(options, &["--functions"]) else { continue };
        let lines = told.lines().filter(|line| line.contains("functions: ") && !line.starts_with('{'));
        assert_eq!(lines.clone().count(), 1, "{told}");
        assert!(lines.clone().all(|line| line.contains(text)), "{options:?}: {told}");
    }
    let Some(told) = said(&["-finstrument-functions"], &["--functions"]) else { return };
    assert!(!told.contains("functions: "), "{told}");
}

#[test]
fn so_are_programs_that_the_command_starts() {
    let folder = tempfile::tempdir().unwrap();
    if !kernel_common::traceable() {
        return;
    }
    let Some(program) = program(folder.path(), "g++", &["-pg"]) else { return };
    let script = format!("{0}; {0}; sleep 0.1; true", program.display());
    let mut recorder = kernel_common::record(folder.path(), &["--functions"], &["sh", "-c", &script]);
    let output = recorder.output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    let notes = told.lines().filter(|line| !line.starts_with('{') && line.contains("add -mfentry"));
    assert_eq!(notes.count(), 1, "{told}");
}

#[test]
fn what_pg_does_otherwise_it_does_when_nobody_asks_for_functions() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(folder.path(), "g++", &["-pg", "-mfentry"]) else { return };
    let profile = folder.path().join("gmon.out");
    for (options, has_profile) in [("--functions", false), ("--locks", true)] {
        let output = recorder(folder.path(), &[options]).arg(&program).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(profile.exists(), has_profile, "{options}");
        let events = recorded::list(&folder.path().join("t"));
        assert_eq!(events.iter().any(|event| event.name == "function:entry"), !has_profile, "{options}");
        fs::remove_dir_all(folder.path().join("t")).unwrap();
    }
}

#[test]
fn a_function_is_a_slice_for_other_viewers() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(folder.path(), "g++", &["-finstrument-functions"]) else { return };
    let recording = record(&["--functions"], &[&program]);
    let told = told(&recording.stdout);
    let export = |format: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tracewing"));
        command.args(["export", "--format", format, "-o", "-"]).arg(recording.trace());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let chrome: Value = serde_json::from_str(&export("chrome")).unwrap();
    let (mut open, mut calls) = (Vec::new(), BTreeMap::new());
    for event in chrome["traceEvents"].as_array().unwrap() {
        match event["ph"].as_str().unwrap() {
            "B" => {
                let name = event["name"].as_str().unwrap().split('(').next().unwrap().to_owned();
                let within: Option<&String> = open.last();
                assert!(name != "inner" || within.is_some_and(|name| name == "outer"), "inner in {within:?}");
                *calls.entry(name.clone()).or_default() += 1;
                open.push(name);
            }
            "E" => drop(open.pop().expect("a begin")),
            "i" => panic!("an event that is no slice: {event}"),
            _ => {}
        }
    }
    assert!(open.is_empty(), "{open:?}");
    assert_eq!(calls, told);
    let paje = export("paje");
    let lines =
        |begin: &str| paje.lines().filter(|line| line.starts_with(begin) && line.contains(" SF F")).count();
    assert_eq!([lines("14 "), lines("9 ")], [told.values().sum::<u64>() as usize; 2]);
    assert!(export("perfetto").contains("recursive(int)"));
}

#[test]
fn arguments_and_results_stay_as_they_are() {
    build(
        &[&["-p", "tracewing-preload"][..], if cfg!(debug_assertions) { &[] } else { &["--release"] }]
            .concat(),
    );
    let folder = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../preload/tests/programs/arguments.c");
    for options in [&["-O0"][..], &["-O2"], &["-O1", "-fcf-protection=full"], &["-O1", "-fno-pie", "-no-pie"]]
    {
        let program = folder.path().join("arguments");
        let mut gcc = Command::new("gcc");
        gcc.args(["-w", "-pg", "-mfentry", "-o"]).arg(&program).arg(&source).args(options);
        if !gcc.output().is_ok_and(|output| output.status.success()) {
            return tracewing_testing::skip(
                tracewing_testing::Cause::Listed("compiler option"),
                format_args!("gcc cannot make this with {options:?}"),
            );
        }
        let alone = Command::new(&program).current_dir(folder.path()).output().unwrap();
        let recording = record(&["--functions"], &[&program]);
        assert_eq!(recording.stdout, String::from_utf8(alone.stdout).unwrap(), "{options:?}");
        let rows = rows(&json(&recording, &[]));
        let calls =
            |name: &str| rows.iter().find(|(known, _)| known.starts_with(name)).unwrap().1["calls"].clone();
        assert_eq!(["within", "apply", "variadic"].map(calls), [100, 100, 100], "{options:?}");
        let chosen = record(&["--functions", "within*"], &[&program]);
        let table = json(&chosen, &[]);
        assert_eq!(table["functions"][0]["calls"], 100, "{options:?}: {table}");
        assert_eq!(table["functions"].as_array().unwrap().len(), 1, "{options:?}");
    }
}
