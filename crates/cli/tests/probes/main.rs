//! `tracewing record --probe` and `--usdt`: events of C programs, compiled in several ways, and of programs
//! of the distribution, against what they are known to do.

mod functions;
#[path = "../harness/mod.rs"]
mod harness;
mod places;
#[path = "../recorded/mod.rs"]
mod recorded;
mod running;

use harness::{Json, Printed, RunExt};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use recorded::{Event, Recording, list, program, record, recorder};
use serde_json::{Value, json};

const ORDERS: u64 = 1000;

/// Whether probes can be placed here; says so if not.
fn probeable() -> bool {
    if let Err(missing) = tracewing_kernel::privileges() {
        tracewing_testing::skip(tracewing_testing::Cause::KernelEvents, format_args!("{missing}"));
        return false;
    }
    let exists = Path::new("/sys/kernel/tracing/uprobe_events").exists();
    if !exists {
        tracewing_testing::skip(tracewing_testing::Cause::Uprobes, "this kernel has no uprobes");
    }
    exists
}

/// Compiles a program of `crates/programs/tests/programs` with gcc; `None` where there is none.
fn compile(folder: &Path, name: &str, options: &[&str]) -> Option<PathBuf> {
    compile_with("gcc", folder, name, options)
}

fn compile_with(compiler: &str, folder: &Path, name: &str, options: &[&str]) -> Option<PathBuf> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../programs/tests/programs");
    let made = folder.join(name);
    let source = sources.join(name).with_extension("c");
    match Command::new(compiler).arg(source).arg("-o").arg(&made).args(options).output() {
        Ok(output) if output.status.success() => Some(made),
        Ok(output) => panic!("{}", output.notes()),
        Err(error) => {
            tracewing_testing::skip(
                tracewing_testing::Cause::Program(compiler),
                format_args!("{compiler}: {error}"),
            );
            None
        }
    }
}

fn events(recording: &Recording) -> Vec<Event> {
    assert_eq!(recording.lost(), 0);
    list(&recording.trace())
}

fn named<'a>(events: &'a [Event], name: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event.name == name).map(|event| &event.payload).collect()
}

/// Runs a recorder that shall refuse; gives what it says.
fn refused(options: &[&str], command: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let output = recorder(folder.path(), options).args(command).ran();
    let stderr = output.notes();
    assert!(!output.status.success(), "{stderr}");
    assert!(!folder.path().join("t").exists(), "{stderr}");
    assert_eq!(stderr.matches("error:").count(), 1, "{stderr}");
    stderr
}
