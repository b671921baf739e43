//! A process that removes a tracer instance, and then its probes, when its recorder is gone, however that
//! ended.
//!
//! It is a shell that waits at a pipe which only the recorder holds the other end of. `kill -9` closes that,
//! too. Where no shell can be started, the next recorder finds the instance and removes it.

use crate::probes;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Waits for the end of its input; then tries for five seconds, since the recorder's other files may close
/// later. A line of input sends it away: the instance is gone then, and another may have its name.
const SCRIPT: &str = r#"cd /; read -r _ && exit 0; for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25; do
    rmdir "$1" 2>/dev/null; [ -d "$1" ] || break; sleep 0.2
done
probes=$(while read -r probe _; do case $probe in ?:"$2"/*) echo "-:${probe#?:}";; esac; done < "$3")
for probe in $probes; do echo "$probe" >> "$3"; done"#;

/// The process. Dropped, it removes the instance and ends.
#[derive(Debug)]
pub(crate) struct Guardian(Child);

impl Guardian {
    /// Starts it for the instance at `path`, whose probes are defined in the file `control`. It has a process
    /// group of its own, so that signals to the recorder's group do not reach it.
    pub(crate) fn start(path: &Path, control: &Path) -> Option<Self> {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", SCRIPT, "tracewing-guardian"]).arg(path).arg(probes::group(path)).arg(control);
        shell.process_group(0);
        shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        shell.spawn().ok().map(Self)
    }

    /// Sends it away: there is nothing left to do.
    pub(crate) fn dismiss(mut self) {
        let stdin = self.0.stdin.as_mut();
        // Where this fails, it has been killed.
        let _ = stdin.map(|stdin| stdin.write_all(b"\n"));
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        // Its status says nothing: another process may have removed the instance.
        let _ = self.0.wait();
    }
}
