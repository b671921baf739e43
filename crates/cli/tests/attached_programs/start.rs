//! What a program costs at its start, and at its end, that nothing records: a look for recorders.

use super::*;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use tracewing_testing::installed;

/// As `crates/tracewing/tests/programs/quiet.rs`, without tracewing.
const PLAIN: &str = "fn main() { println!(\"{}\", std::env::args().len()); }";

/// How often a program makes which system call, from `execve` on.
fn calls(program: &Path, folder: &Path) -> BTreeMap<String, usize> {
    let file = folder.join("calls");
    let mut command = Command::new("strace");
    command.args(["-f", "-o"]).arg(&file).arg(program).env_remove("RUST_BACKTRACE").stdout(Stdio::null());
    assert!(command.status().unwrap().success());
    let mut calls = BTreeMap::new();
    for line in std::fs::read_to_string(file).unwrap().lines() {
        // `PID NAME(ARGUMENTS) = RESULT`
        let call = line.split_ascii_whitespace().nth(1).and_then(|word| word.split_once('('));
        call.into_iter().for_each(|(name, _)| *calls.entry(name.to_owned()).or_default() += 1);
    }
    calls
}

#[test]
fn a_program_that_nothing_records_makes_the_same_system_calls() {
    if !installed(&["strace"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let [source, plain] = ["plain.rs", "plain"].map(|name| folder.path().join(name));
    std::fs::write(&source, PLAIN).unwrap();
    let rustc = std::env::var_os("RUSTC").unwrap_or("rustc".into());
    assert!(Command::new(rustc).arg(&source).arg("-o").arg(&plain).status().unwrap().success());
    let quiet = recorded::program("quiet");
    let mut expected = calls(&plain, folder.path());
    assert!(expected["execve"] == 1 && expected["exit_group"] == 1, "{expected:?}");
    // It has looked for recorders of all programs: root's, and this user's.
    *expected.entry("openat".to_owned()).or_default() += if am_root() { 1 } else { 2 };
    assert_eq!(calls(&quiet, folder.path()), expected);
}
