//! Functions that are chosen by name, and programs whose functions cannot be recorded.

use super::*;

#[test]
fn only_functions_that_are_chosen_are_recorded() {
    for (compiler, options) in BUILDS {
        let folder = tempfile::tempdir().unwrap();
        let Some(program) = program(folder.path(), compiler, options) else { continue };
        let chosen = ["--functions", "inn?r", "--functions", "call*", "--functions", "arguments(int*"];
        let recording = record(&chosen, &[&program]);
        let mut reported = reported(&recording.stdout);
        reported.retain(|name, _| ["inner", "calls", "called", "arguments"].contains(&name.as_str()));
        assert_eq!(reported.len(), 4);
        assert_eq!(counted(&rows(&json(&recording, &[]))), reported, "{compiler} {options:?}");
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
            let is_reported = !recording.summary["notes"].as_array().unwrap().is_empty();
            assert_eq!(is_reported, chosen.is_empty(), "{what}");
        }
    }
}

#[test]
fn copies_that_gcc_has_made_are_asked_for_by_their_functions_name() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program_of("clones.c", folder.path(), "gcc", &["-pg", "-mfentry"]) else { return };
    let names = Command::new("nm").arg(&program).ran();
    let names = names.text();
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
fn patterns_without_calls_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(folder.path(), "g++", &["-finstrument-functions"]) else { return };
    for options in [&[][..], &["-e", "*"]] {
        let recording = record(&[options, &["--functions", "nowhere*"]].concat(), &[&program]);
        let notes = "no function that was called matched --functions 'nowhere*'";
        assert_eq!(recording.summary["notes"], Value::Array(vec![notes.into()]), "{options:?}");
    }
    // Here nothing shows it.
    for options in [&["--exclude", "function:*"][..], &["--sub-buffer-size", "4K", "--sub-buffers", "2"]] {
        let recording =
            record(&[options, &["--functions", "inner"]].concat(), &[program.as_os_str(), "long".as_ref()]);
        assert_eq!(recording.summary["notes"], Value::Array(Vec::new()), "{options:?}");
    }
}

#[test]
fn programs_whose_functions_cannot_be_recorded_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let said = |options: &[&str], recorded: &[&str]| {
        let program = program(folder.path(), "g++", options)?;
        let recorder = recorder(folder.path(), recorded).arg(&program).stdin(Stdio::null()).ran();
        fs::remove_dir_all(folder.path().join("t")).unwrap();
        assert!(recorder.status.success());
        Some(recorder.notes())
    };
    for (options, text) in [
        (&[][..], "has no instrumented functions of its own"),
        (&["-pg"], "add -mfentry"),
        (&["-static", "-finstrument-functions"], "is statically linked"),
    ] {
        let Some(reported) = said(options, &["--functions"]) else { continue };
        let lines = reported.lines().filter(|line| line.contains("functions: ") && !line.starts_with('{'));
        assert_eq!(lines.clone().count(), 1, "{reported}");
        assert!(lines.clone().all(|line| line.contains(text)), "{options:?}: {reported}");
    }
    let Some(reported) = said(&["-finstrument-functions"], &["--functions"]) else { return };
    assert!(!reported.contains("functions: "), "{reported}");
}

#[test]
fn programs_that_the_command_starts_are_reported_too() {
    let folder = tempfile::tempdir().unwrap();
    if !harness::traceable() {
        return;
    }
    let Some(program) = program(folder.path(), "g++", &["-pg"]) else { return };
    let script = format!("{0}; {0}; sleep 0.1; true", program.display());
    let mut recorder = kernel_common::record(folder.path(), &["--functions"], &["sh", "-c", &script]);
    let output = recorder.ran();
    let reported = output.notes();
    let notes = reported.lines().filter(|line| !line.starts_with('{') && line.contains("add -mfentry"));
    assert_eq!(notes.count(), 1, "{reported}");
}

#[test]
fn pg_works_as_usual_without_functions() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(folder.path(), "g++", &["-pg", "-mfentry"]) else { return };
    let profile = folder.path().join("gmon.out");
    for (options, has_profile) in [("--functions", false), ("--locks", true)] {
        recorder(folder.path(), &[options]).arg(&program).succeeds();
        assert_eq!(profile.exists(), has_profile, "{options}");
        let events = recorded::list(&folder.path().join("t"));
        assert_eq!(events.iter().any(|event| event.name == "function:entry"), !has_profile, "{options}");
        fs::remove_dir_all(folder.path().join("t")).unwrap();
    }
}
