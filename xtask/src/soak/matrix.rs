//! Programs that keep their own logs, recorded with every set of options. The test `matrix` of the command
//! does it with half of the combinations; here it does all.

use crate::steps::run as run_command;
use anyhow::Result;
use std::process::Command;

/// Records and checks all combinations.
pub fn run() -> Result<()> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["test", "--release", "--package", "tracewing-cli", "--test", "matrix"]);
    run_command(command.env("TRACEWING_MATRIX_WHOLE", "1"))
}
