//! What tests of locks share: building C programs, recording their locks, what `truth.c` says of its calls,
//! and the table.

#![allow(dead_code, reason = "each test file uses its part")]

use crate::harness::{Json, Printed, RunExt};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::recorded::{Recording, build, record};

/// Compiles a program of `crates/preload/tests/programs`, and builds the library; `None` where there is no
/// such compiler.
pub fn program(folder: &Path, name: &str, options: &[&str]) -> Option<PathBuf> {
    let optimised: &[&str] = if cfg!(debug_assertions) { &[] } else { &["--release"] };
    build(&[&["-p", "tracewing-preload"], optimised].concat());
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../preload/tests/programs")
        .join(name)
        .with_extension("c");
    let program = folder.join(name);
    let mut gcc = Command::new("gcc");
    gcc.args(["-O1", "-pthread", "-o"]).arg(&program).arg(source).args(options);
    match gcc.output() {
        Ok(output) if output.status.success() => Some(program),
        Ok(output) if options.is_empty() => panic!("{}", output.notes()),
        _ => {
            tracewing_testing::skip(
                tracewing_testing::Cause::Listed("compiler option"),
                format_args!("gcc cannot make this with {options:?}"),
            );
            None
        }
    }
}

pub fn record_locks(options: &[&str], program: &Path) -> Recording {
    record(&[&["--locks"], options].concat(), &[program])
}

/// A call that the program made.
#[derive(Debug)]
pub struct Call {
    pub operation: String,
    pub lock: u64,
    /// ns.
    pub before: u64,
    pub after: u64,
    pub result: i64,
    /// `None` where it is unknown.
    pub waited: Option<bool>,
    pub owner: Option<u64>,
    pub line: u64,
}

/// The calls of each thread.
pub fn calls(stdout: &str) -> BTreeMap<i64, Vec<Call>> {
    let mut calls: BTreeMap<i64, Vec<Call>> = BTreeMap::new();
    for line in stdout.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |at: usize| words[at].parse::<i64>().unwrap();
        calls.entry(number(0)).or_default().push(Call {
            operation: words[1].to_owned(),
            lock: words[2].parse().unwrap(),
            before: words[3].parse().unwrap(),
            after: words[4].parse().unwrap(),
            result: number(5),
            waited: [Some(false), Some(true)].get(usize::try_from(number(6)).unwrap_or(2)).copied().flatten(),
            owner: u64::try_from(number(7)).ok(),
            line: words[8].parse().unwrap(),
        });
    }
    calls
}

/// What `tracewing locks` says of a recording.
pub fn table(recording: &Recording, options: &[&str]) -> Value {
    let mut command = crate::harness::tracewing();
    let output =
        command.arg("locks").arg(recording.trace()).args(["--format", "json"]).args(options).succeeds();
    output.json()
}
