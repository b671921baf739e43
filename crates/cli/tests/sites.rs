//! `tracewing sites`: of a program's file, and of a process while it is recorded.

mod harness;
mod recorded;

use harness::{Printed, RunExt};
use std::io::{BufRead, BufReader};
use std::process::{Command, Output, Stdio};

use recorded::program;
use serde_json::Value;

fn sites(arguments: &[&str]) -> Output {
    harness::tracewing().arg("sites").args(arguments).ran()
}

fn stdout(arguments: &[&str]) -> String {
    let output = sites(arguments);
    assert!(output.status.success(), "{output:?}");
    output.text()
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&stdout(&[arguments, &["--format", "json"]].concat())).unwrap()
}

/// Name and state of each site.
fn states(answer: &Value) -> Vec<(&str, &str)> {
    let sites = answer["sites"].as_array().unwrap();
    sites.iter().map(|site| (site["name"].as_str().unwrap(), site["state"].as_str().unwrap())).collect()
}

#[test]
fn a_programs_file_lists_its_sites_in_every_form() {
    let steps = program("steps");
    let steps = steps.to_str().unwrap();
    let answer = json(&[steps]);
    assert_eq!(states(&answer), [("steps:other", "off"), ("steps:step", "off")]);
    let site = &answer["sites"][1];
    assert_eq!(
        (&site["level"], &site["major"], &site["kind"]),
        (&"debug".into(), &3.into(), &"event".into())
    );
    assert_eq!(site["object"], steps);
    assert!(site["file"].as_str().unwrap().ends_with("tests/programs/steps.rs"), "{site}");
    let fields = serde_json::json!([{ "name": "number", "type": "u64" }, { "name": "word", "type": "str" }]);
    assert_eq!(site["fields"], fields);

    let csv = stdout(&[steps, "--format", "csv", "-e", "*:step"]);
    let lines: Vec<_> = csv.lines().collect();
    assert_eq!(lines[0], "name,level,major,state,kind,process,object,address,file,line,fields,description");
    assert!(lines[1].starts_with("steps:step,debug,3,off,event,,"), "{csv}");
    assert!(lines[1].ends_with(",\"number u64, word str\",") && lines.len() == 2, "{csv}");

    let table = stdout(&[steps]);
    assert!(table.contains("\nsteps:step ") && table.contains("  number u64, word str\n"), "{table}");
    assert!(table.ends_with("2 sites of 2 names, 0 on\n"), "{table}");
}

#[test]
fn a_process_lists_which_are_on() {
    let folder = tempfile::tempdir().unwrap();
    let mut recorder = harness::tracewing();
    recorder.current_dir(folder.path()).args(["record", "--no-kernel", "-o", "t", "-e", "steps:step", "--"]);
    recorder.arg(program("steps")).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut recorder = recorder.spawn().unwrap();
    let pid = BufReader::new(recorder.stdout.take().unwrap()).lines().next().unwrap().unwrap();
    let answer = json(&[&pid]);
    assert_eq!(states(&answer), [("steps:other", "off"), ("steps:step", "on")]);
    assert_eq!(answer["sites"][0]["process"].to_string(), pid);
    drop(recorder.stdin.take());
    assert!(recorder.wait().unwrap().success());
}

#[test]
fn where_there_are_none_it_says_why() {
    let output = sites(&["sh"]);
    assert!(output.status.success() && output.stdout.is_empty());
    let message = output.notes();
    assert!(
        message.contains("no sites in sh: nothing in it is linked with the crate `tracewing`"),
        "{message}"
    );
    assert_eq!(json(&["sh"])["sites"], Value::Array(Vec::new()));

    let steps = program("steps");
    let output = sites(&[steps.to_str().unwrap(), "-e", "shop:*"]);
    let message = output.notes();
    assert!(message.contains("none of the 2 sites has a name that matches"), "{message}");
}

#[test]
fn what_is_no_program_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script");
    std::fs::write(&script, "#!/bin/sh\n").unwrap();
    for (source, expected) in [
        (script.to_str().unwrap(), "a script, not a program"),
        ("./nothing-here", "cannot read ./nothing-here"),
        ("4294967295", "there is no process 4294967295"),
    ] {
        let output = sites(&[source]);
        let message = output.notes();
        assert!(!output.status.success() && message.contains(expected), "{source}: {message}");
    }
}

#[test]
fn usdt_probes_are_listed_with_them() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("usdt");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../programs/tests/programs/usdt.c");
    let gcc = Command::new("gcc").args(["-O1", source, "-o"]).arg(&program).status();
    if !gcc.is_ok_and(|status| status.success()) {
        return tracewing_testing::skip(tracewing_testing::Cause::Program("gcc"), "gcc is not installed");
    }
    let program = program.to_str().unwrap();
    let answer = json(&[program]);
    assert_eq!(states(&answer), [("shop:done", "off"), ("shop:done", "off"), ("shop:taken", "off")]);
    assert_eq!(answer["warnings"], serde_json::json!([]));
    let taken = &answer["sites"][2];
    assert_eq!(taken["kind"], "usdt");
    let types: Vec<_> = taken["fields"].as_array().unwrap().iter().map(|field| &field["type"]).collect();
    assert_eq!(types, ["s32", "u64", "u8", "u64", "s32", "s32", "unknown"]);
    let table = stdout(&[program, "-e", "*:done"]);
    assert!(
        table.contains("\nshop:done  -")
            && table.contains("  arg1 s32\n")
            && table.ends_with("2 sites of 1 name, 0 on\n"),
        "{table}"
    );
    let csv = stdout(&[program, "--format", "csv"]);
    assert_eq!(csv.lines().count(), 4, "{csv}");
}
