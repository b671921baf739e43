//! A process that removes a tracer instance when its recorder is gone, however that ended.
//!
//! It is a shell that waits at a pipe which only the recorder holds the other end of. `kill -9` closes that, too. Where no
//! shell can be started, the next recorder finds the instance and removes it.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Waits for the end of its input; then tries for five seconds, since the recorder's other files may close later.
const SCRIPT: &str = r#"cd /; read -r _; for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25; do
    rmdir "$1" 2>/dev/null; [ -d "$1" ] || exit 0; sleep 0.2
done"#;

/// The process; it ends when dropped, after it has removed what is left.
#[derive(Debug)]
pub(crate) struct Guardian(Child);

impl Guardian {
    /// Starts it for the instance at `path`, in a process group of its own, so that signals for the recorder's pass it by.
    pub(crate) fn start(path: &Path) -> Option<Self> {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", SCRIPT, "tracewing-guardian"]).arg(path).process_group(0);
        shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        shell.spawn().ok().map(Self)
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        // Its status says nothing: there may have been nothing left to remove.
        let _ = self.0.wait();
    }
}
