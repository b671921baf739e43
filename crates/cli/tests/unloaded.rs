//! Libraries that a program loads where others were before: locks and functions have the names of each.

mod harness;
mod lock_programs;
mod recorded;

use harness::{Json, RunExt};
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use lock_programs::{program, table};
use recorded::record;
use serde_json::Value;

#[test]
fn code_has_the_names_of_what_was_loaded_there_at_that_time() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(folder.path(), "unload", &[]) else { return };
    let library = |name: &str| {
        let path = folder.path().join(name);
        let mut gcc = Command::new("gcc");
        gcc.args(["-O1", "-shared", "-fPIC", "-finstrument-functions", &format!("-DNAME={name}"), "-o"]);
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../preload/tests/programs/part.c");
        assert!(gcc.arg(&path).arg(source).status().unwrap().success());
        path
    };
    let parts = ["first_", "second"].map(library);
    let [first, second] = &parts;
    let command = [&program, first, second, first, first];
    for options in [&["--functions"][..], &["--functions", "first_", "--functions", "second"]] {
        let recording = record(&[&["--locks", "--lock-chains", "all"], options].concat(), &command);
        let places: BTreeSet<&str> = recording.stdout.lines().collect();
        assert_eq!(places.len(), 1, "the loader puts them at the same place: {}", recording.stdout);
        let expected = BTreeMap::from([("first_".to_owned(), 6), ("second".to_owned(), 2)]);
        for by in ["caller", "chain"] {
            let found = table(&recording, &["--by", by]);
            let rows = found["locks"].as_array().unwrap().iter();
            let at = |row: &Value| row["at"].as_str().unwrap().split('+').next().unwrap().to_owned();
            let mut counts = BTreeMap::new();
            for row in rows {
                *counts.entry(at(row)).or_default() += row["acquired"].as_u64().unwrap();
            }
            counts.retain(|name, _| expected.contains_key(name));
            assert_eq!(counts, expected, "by {by}: {found}");
        }
        let mut functions = harness::tracewing();
        let output = functions.arg("functions").arg(recording.trace()).args(["--format", "json"]).ran();
        let found: Value = output.json();
        let rows = found["functions"].as_array().unwrap().iter();
        let mut counts: BTreeMap<String, u64> = rows
            .map(|row| (row["function"].as_str().unwrap().to_owned(), row["calls"].as_u64().unwrap()))
            .collect();
        counts.retain(|name, _| expected.contains_key(name));
        assert_eq!(counts, expected, "{options:?}: {found}");
    }
}
