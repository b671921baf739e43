//! The ring's loads of threads, and the slot FIFO's, under ThreadSanitizer.
//!
//! ThreadSanitizer sees no assembly, so protocol `Publish` is left out, and `Local` runs on locked
//! instructions (`--cfg tracewing_tsan`). It knows no fences, so a copy that is discarded when it was torn
//! looks like a race; that one place is exempted. Processes are left out, since it only examines one.

use super::RING;
use crate::steps::{run as run_command, target_folder};
use anyhow::{Context, Result};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const TARGET: &str = "x86_64-unknown-linux-gnu";

/// What is not a race: the words that a reader copies in overwrite mode before it knows whether they are
/// whole.
const EXCEPTIONS: &str = "race:mapped::Cpu>::copy\n";

/// Runs for `length`, or says why not.
pub fn run(length: Duration) -> Result<()> {
    if let Some(missing) = missing() {
        println!("ThreadSanitizer skipped: {missing}");
        return Ok(());
    }
    let exceptions = target_folder()?.join("tsan-exceptions");
    std::fs::write(&exceptions, EXCEPTIONS)
        .with_context(|| format!("cannot write {}", exceptions.display()))?;
    let mut fifo = cargo(&exceptions)?;
    fifo.args(["--package", "tracewing-ring", "--test", "slot_fifo"]);
    run_command(&mut fifo)?;
    let mut ring = cargo(&exceptions)?;
    ring.env("TRACEWING_SOAK_SECONDS", length.as_secs().to_string()).env("TRACEWING_SOAK_THREADS_ONLY", "1");
    run_command(ring.args(RING))
}

/// A test command on the nightly toolchain, with a standard library that is instrumented too.
fn cargo(exceptions: &Path) -> Result<Command> {
    let mut command = Command::new("rustup");
    command
        .args(["run", "nightly", "cargo", "test", "-Zbuild-std", "--target", TARGET, "--release"])
        .env_remove("CARGO")
        .env_remove("RUSTC")
        .env_remove("RUSTUP_TOOLCHAIN")
        .env("CARGO_TARGET_DIR", target_folder()?.join("tsan"))
        .env("RUSTFLAGS", "-Zsanitizer=thread --cfg tracewing_tsan")
        .env("TSAN_OPTIONS", format!("suppressions={} report_signal_unsafe=0", exceptions.display()));
    Ok(command)
}

/// What the machine lacks.
fn missing() -> Option<&'static str> {
    let sysroot = Command::new("rustup").args(["run", "nightly", "rustc", "--print", "sysroot"]).output();
    let Some(sysroot) = sysroot.ok().filter(|output| output.status.success()) else {
        return Some("needs nightly (rustup toolchain install nightly --component rust-src)");
    };
    let sysroot = String::from_utf8_lossy(&sysroot.stdout).into_owned();
    let sources = Path::new(sysroot.trim()).join("lib/rustlib/src/rust/library");
    (!sources.exists()).then_some("needs rust-src (rustup component add rust-src --toolchain nightly)")
}
