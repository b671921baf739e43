//! Runs commands, each within a time limit, and returns their output as text, or fails with the reason.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// A command that has not ended by then never ends: builds on a busy machine take longest.
const LIMIT: Duration = Duration::from_secs(900);

/// Runs commands to their end.
pub trait RunExt {
    /// Runs it without input, in a process group of its own.
    ///
    /// # Panics
    /// The command cannot be started, or does not end within 15 minutes: then its process group is killed.
    fn ran(&mut self) -> Output;

    /// The same for a command that must succeed.
    ///
    /// # Panics
    /// See [`RunExt::ran`]; or the command fails.
    fn succeeds(&mut self) -> Output;
}

impl RunExt for Command {
    fn ran(&mut self) -> Output {
        run_within(self, LIMIT)
    }

    fn succeeds(&mut self) -> Output {
        let output = self.ran();
        assert!(output.status.success(), "{self:?}: {}\n{}{}", output.status, output.text(), output.notes());
        output
    }
}

/// The output of a command.
pub trait Printed {
    /// Standard output.
    ///
    /// # Panics
    /// The output is not UTF-8.
    fn text(&self) -> String;

    /// Standard error: notes, warnings and errors.
    ///
    /// # Panics
    /// The output is not UTF-8.
    fn notes(&self) -> String;
}

impl Printed for Output {
    fn text(&self) -> String {
        String::from_utf8(self.stdout.clone()).expect("standard output is text")
    }

    fn notes(&self) -> String {
        String::from_utf8(self.stderr.clone()).expect("standard error is text")
    }
}

fn run_within(command: &mut Command, limit: Duration) -> Output {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (ended, end) = mpsc::channel();
    // Both pipes are read while the command runs: a full one would block it.
    let (stdout, stderr) = (reader(child.stdout.take(), ended.clone()), reader(child.stderr.take(), ended));
    let deadline = Instant::now() + limit;
    for _ in 0..2 {
        // A pipe ends when all processes that hold it have ended or closed it.
        let left = deadline.saturating_duration_since(Instant::now());
        if end.recv_timeout(left).is_err() {
            kill(&mut child);
            panic!("{command:?} does not end within {limit:?}");
        }
    }
    let [stdout, stderr] = [stdout, stderr].map(|pipe| pipe.join().expect("reading does not panic"));
    while Instant::now() < deadline {
        if let Some(status) = child.try_wait().expect("a child can be waited for") {
            return Output { status, stdout, stderr };
        }
        thread::sleep(Duration::from_millis(1));
    }
    kill(&mut child);
    panic!("{command:?} does not end within {limit:?}");
}

fn reader(pipe: Option<impl Read + Send + 'static>, ended: mpsc::Sender<()>) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = pipe.expect("it is piped").read_to_end(&mut bytes);
        // Without a receiver, the limit has passed.
        let _ = ended.send(());
        read.map(|_| bytes).expect("a pipe can be read")
    })
}

/// Kills the process group of a child, and waits for the child.
fn kill(child: &mut Child) {
    // SAFETY: the call takes only numbers. The child has not been waited for, so the group is its own.
    unsafe { libc::kill(-child.id().cast_signed(), libc::SIGKILL) };
    let _ = child.wait();
}

/// Waits until `has_come` returns true.
///
/// # Panics
/// That does not happen within five minutes.
pub fn wait_until(what: &str, mut has_come: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !has_come() {
        assert!(begin.elapsed() < Duration::from_secs(300), "{what}: not within five minutes");
        thread::sleep(Duration::from_millis(5));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::catch_unwind;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn output_is_whole() {
        let output = shell("cat; echo some; echo more >&2; exit 3").ran();
        assert_eq!((output.status.code(), &*output.text(), &*output.notes()), (Some(3), "some\n", "more\n"));
        // More than a pipe holds, on both.
        let output = shell("head -c 300000 /dev/zero >&2; head -c 300000 /dev/zero").succeeds();
        assert_eq!((output.stdout.len(), output.stderr.len()), (300_000, 300_000));
    }

    #[test]
    fn a_failure_shows_what_was_printed() {
        let failure = catch_unwind(|| shell("echo the reason >&2; exit 1").succeeds()).unwrap_err();
        assert!(failure.downcast_ref::<String>().is_some_and(|text| text.contains("the reason")));
    }

    #[test]
    fn what_does_not_end_is_killed_with_its_children() {
        let begin = Instant::now();
        let limit = Duration::from_millis(100);
        for script in ["sleep 60 & wait", "exec >&- 2>&-; sleep 60"] {
            let failure = catch_unwind(|| run_within(&mut shell(script), limit)).unwrap_err();
            assert!(failure.downcast_ref::<String>().is_some_and(|text| text.contains("does not end")));
        }
        assert!(begin.elapsed() < Duration::from_secs(60));
    }
}
