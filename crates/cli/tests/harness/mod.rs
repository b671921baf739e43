//! The command under test: how all tests of this package build and run it, and read what it prints.
//!
//! What any command needs (limits of time, output as text, what this machine has) is in
//! `tracewing_testing`.

#![allow(dead_code, unused_imports, reason = "each test file uses its part")]

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

pub use tracewing_testing::{Printed, RunExt};

/// What a command printed, as JSON.
pub trait Json {
    /// Standard output, which is one JSON document.
    ///
    /// # Panics
    /// It is none.
    fn json(&self) -> Value;
}

impl Json for Output {
    fn json(&self) -> Value {
        let text = self.text();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}\n{}", self.notes()))
    }
}

pub const TRACEWING: &str = env!("CARGO_BIN_EXE_tracewing");

/// The program, without the configuration file of the user that runs the tests.
pub fn tracewing() -> Command {
    let mut command = Command::new(TRACEWING);
    command.env("XDG_CONFIG_HOME", "/nonexistent");
    command
}

/// `tracewing ARGUMENTS`, run to its end.
pub fn run(arguments: &[&str]) -> Output {
    tracewing().args(arguments).ran()
}

/// `tracewing ARGUMENTS TRACE`.
pub fn of(trace: &Path, arguments: &[&str]) -> Command {
    let mut command = tracewing();
    command.args(arguments).arg(trace);
    command
}

/// What a command prints of a trace: its output, and what it warns of.
pub fn print(trace: &Path, arguments: &[&str]) -> (String, String) {
    let output = of(trace, arguments).succeeds();
    (output.text(), output.notes())
}

/// The document that a command prints as JSON.
pub fn json(trace: &Path, arguments: &[&str]) -> Value {
    of(trace, &[arguments, &["--format", "json"]].concat()).succeeds().json()
}

/// The same, and what it warns of.
pub fn json_and_notes(trace: &Path, arguments: &[&str]) -> (Value, String) {
    let output = of(trace, &[arguments, &["--format", "json"]].concat()).succeeds();
    (output.json(), output.notes())
}

/// Whether the kernel can be traced here; says so if not.
pub fn traceable() -> bool {
    tracewing_testing::traceable(tracewing_kernel::privileges())
}
