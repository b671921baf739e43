//! Why a recorder of a session has ended by itself, in its words, and what it has recorded by then: what it
//! has said is in a file next to its trace.

use super::definition::Definition;
use serde_json::Value;
use std::ffi::OsString;
use std::fs::{read, read_dir};
use std::io;
use std::path::{Path, PathBuf};

/// What a recorder says that cannot write any more.
const STOPPED: &str = "recording stopped";

/// The end of a recorder.
pub struct Ended {
    /// Why, in its words.
    pub why: String,
    /// What it has recorded; `None` if it was killed.
    pub summary: Option<Value>,
    /// The folder that it has written to.
    pub output: PathBuf,
}

/// How the last recorder of a channel or trigger has ended by itself; `None` if there was none, or if its
/// trace is complete. It must not run.
pub fn of(definition: &Definition, part: &str) -> Option<Ended> {
    let log = log(definition, part)?;
    let text = said(&log).ok()?;
    Some(Ended { why: why(&text)?, summary: summary(&text), output: log.with_extension("") })
}

/// The newest file with what a recorder has said: of the last start, and there of the last recorder.
fn log(definition: &Definition, part: &str) -> Option<PathBuf> {
    let starts = read_dir(&definition.output).ok()?.flatten().map(|start| start.path());
    let logs = starts.filter_map(|start| {
        let names = read_dir(&start).ok()?.flatten().map(|entry| entry.file_name());
        let numbers = names.filter_map(|name| number(name.to_str()?.strip_suffix(".log")?, part));
        let log = start.join(log_name(&place(part, numbers.max()?)));
        log.is_file().then_some((start, log))
    });
    // The names of starts are their times.
    logs.max().map(|(_, log)| log)
}

/// The folder of the `number`th recorder of a channel in a start. No channel has the later names.
fn place(channel: &str, number: usize) -> String {
    if number == 1 { channel.to_owned() } else { format!("{channel}~{number}") }
}

/// Which of a channel's recorders has this folder.
fn number(place: &str, channel: &str) -> Option<usize> {
    match place.strip_prefix(channel)? {
        "" => Some(1),
        rest => rest.strip_prefix('~')?.parse().ok(),
    }
}

/// The folder of the next recorder of a channel, in that of a start with these entries.
pub fn next_place(channel: &str, entries: &[OsString]) -> String {
    let names = entries.iter().filter_map(|name| name.to_str());
    let numbers = names.filter_map(|name| number(name.strip_suffix(".log").unwrap_or(name), channel));
    place(channel, numbers.max().unwrap_or(0) + 1)
}

/// The file with what a recorder has said that writes to this folder.
pub fn log_name(place: &str) -> String {
    format!("{place}.log")
}

/// What is in such a file. Programs may print what is no UTF-8.
///
/// # Errors
/// It cannot be read.
pub fn said(log: &Path) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&read(log)?).into_owned())
}

/// What a recorder prints at its end.
pub fn summary(log: &str) -> Option<Value> {
    log.lines().last().and_then(|line| serde_json::from_str(line).ok())
}

fn why(text: &str) -> Option<String> {
    let mut lines: Vec<&str> = text.lines().collect();
    let summary = summary(text);
    if summary.as_ref().is_some_and(|summary| summary["state"] == "complete") {
        return None;
    }
    if summary.is_some() {
        lines.pop();
    }
    let stopped = lines.iter().rfind(|line| line.contains(STOPPED));
    let last = stopped.or(lines.last()).map(|line| line.trim_start_matches("tracewing: "));
    Some(match (last, summary.is_some()) {
        (Some(line), true) => line.to_owned(),
        (Some(line), false) => format!("it was killed; the last that it said: {line}"),
        (None, true) => "its trace is not complete".to_owned(),
        (None, false) => "it was killed".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_programs_print_hides_no_summary() {
        let place = tempfile::tempdir().unwrap();
        let log = place.path().join("main.log");
        std::fs::write(&log, b"\xff\n{\"state\":\"complete\"}\n").unwrap();
        let text = said(&log).unwrap();
        assert_eq!((text.lines().count(), why(&text)), (2, None));
    }

    #[test]
    fn the_last_words_of_a_recorder_are_its_error() {
        let summary = r#"{"state":"cut short"}"#;
        let full = "recording stopped, the disk is full: x";
        for (text, expected) in [
            (String::new(), Some("it was killed")),
            (r#"{"state":"complete"}"#.to_owned(), None),
            (format!("tracewing: a\n{}", r#"{"state":"complete"}"#), None),
            (format!("tracewing: {full}\ntracewing: b\n{summary}\n"), Some(full)),
            (format!("{summary}\n"), Some("its trace is not complete")),
            ("tracewing: a\n".to_owned(), Some("it was killed; the last that it said: a")),
        ] {
            assert_eq!(why(&text).as_deref(), expected, "{text}");
        }
    }
}
