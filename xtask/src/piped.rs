//! Commands whose output is read: printed as it comes, or in one piece when they have ended.

use anyhow::{Context, Result};
use std::io::{BufRead, BufReader, PipeReader, Write, pipe};
use std::process::{Command, ExitStatus};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long output is awaited after the end of a command.
const LEFT: Duration = Duration::from_secs(10);

/// When output is printed. Of commands that run at the same time, one prints at once.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Printed {
    AtOnce,
    AtTheEnd,
}

/// Runs a command to its end. Returns its exit status and the lines that it and its children have printed:
/// standard output and errors are one stream, in the order in which they were written.
pub fn run(mut command: Command, printed: Printed) -> Result<(ExitStatus, Vec<String>)> {
    let (from, to) = pipe()?;
    let arguments: Vec<_> = command.get_args().map(|argument| argument.to_string_lossy()).collect();
    let arguments = arguments.join(" ");
    command.stdout(to.try_clone()?).stderr(to);
    let mut child =
        command.spawn().with_context(|| format!("cannot start {}", command.get_program().display()))?;
    drop(command); // with its ends of the pipe
    let lines = Arc::new(Mutex::new(Vec::new()));
    let reader = thread::spawn({
        let lines = Arc::clone(&lines);
        move || pass_on(from, &lines, printed)
    });
    let status = child.wait()?;
    // A process that a test has left may keep the pipe open.
    let end = Instant::now() + LEFT;
    while !reader.is_finished() && Instant::now() < end {
        thread::sleep(Duration::from_millis(10));
    }
    let lines = std::mem::take(&mut *lines.lock().unwrap_or_else(PoisonError::into_inner));
    if printed == Printed::AtTheEnd {
        let mut out = std::io::stdout().lock();
        writeln!(out, "== from here, printed meanwhile by: {arguments}")?;
        lines.iter().try_for_each(|line| writeln!(out, "{line}"))?;
        writeln!(out, "== up to here, printed meanwhile by: {arguments}")?;
    }
    Ok((status, lines))
}

/// Keeps the lines that come, and prints them if that is asked for.
fn pass_on(from: PipeReader, lines: &Mutex<Vec<String>>, printed: Printed) {
    for line in BufReader::new(from).split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line).into_owned();
        if printed == Printed::AtOnce {
            println!("{line}");
        }
        lines.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_and_errors_are_one_stream() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo one; echo two >&2; echo three; exit 3"]);
        let (status, lines) = run(command, Printed::AtOnce).unwrap();
        assert_eq!((status.code(), lines.join(" ").as_str()), (Some(3), "one two three"));
    }
}
