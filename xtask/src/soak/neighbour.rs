//! A hostile user of the machine during a soak: `neighbour.py`, run as user 65534 (`nobody`).

use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::process::{Child, Command, Stdio};

const SCRIPT: &str = include_str!("neighbour.py");

/// The running attacker; dropping it ends it.
pub struct Neighbour(Child);

impl Neighbour {
    /// Starts it during recordings that are made in `folder`, which every user can write.
    ///
    /// # Errors
    /// `setpriv` or Python cannot be run, or this is not root.
    pub fn start(folder: &Path) -> Result<Self> {
        let child = Command::new("setpriv")
            .args(["--reuid=65534", "--regid=65534", "--clear-groups", "/usr/bin/python3", "-c", SCRIPT])
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start a program as another user")?;
        Ok(Self(child))
    }

    /// Ends it, and returns what it says it did.
    ///
    /// # Errors
    /// It ended before, which means that it attacked nothing.
    pub fn stop(mut self) -> Result<String> {
        ensure!(self.0.try_wait()?.is_none(), "the hostile neighbour ended early");
        drop(self.0.stdin.take());
        let mut said = String::new();
        if let Some(mut output) = self.0.stdout.take() {
            std::io::Read::read_to_string(&mut output, &mut said)?;
        }
        ensure!(self.0.wait()?.success(), "the hostile neighbour failed");
        Ok(said.trim().to_owned())
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
