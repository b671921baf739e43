//! The loom half of the models: the ring's own code, and K42's scheme, run through their interleavings.
//!
//! Tests under `--cfg loom` are built apart, since they are other programs: with the checker's atomics in
//! place of the processor's.

use anyhow::{Context, Result, bail};
use std::process::Command;

/// Packages and their test programs that run under loom, and whether those are so large that the quick form
/// bounds them.
const PROGRAMS: &[(&str, &str, bool)] =
    &[("tracewing-ring", "loom", true), ("tracewing-trigger", "loom", false), ("bench", "k42", false)];

/// Builds and runs all of them. The quick form lets the checker preempt a thread at one place per run; the
/// full form at the number of places that each test sets, mostly two.
pub fn run(is_quick: bool) -> Result<()> {
    let folder = crate::steps::target_folder()?.join("loom");
    for (package, test, is_large) in PROGRAMS {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.args(["test", "--release", "--package", package, "--test", test]);
        command.current_dir(crate::root()?);
        command.env("RUSTFLAGS", "--cfg loom").env("CARGO_TARGET_DIR", &folder);
        command.env("CARGO_PROFILE_RELEASE_LTO", "off");
        if is_quick && *is_large {
            command.env("LOOM_MAX_PREEMPTIONS", "1");
        }
        let status = command.status().context("cannot start cargo")?;
        if !status.success() {
            bail!("the models of {package}, test {test}, do not hold");
        }
    }
    Ok(())
}
