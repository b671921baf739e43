//! Why a recorder of a session has ended by itself, in its words: what it has said is in a file next to its
//! trace.

use super::definition::Definition;
use serde_json::Value;
use std::fs::{read_dir, read_to_string};
use std::path::PathBuf;

/// What a recorder says that cannot write any more.
const STOPPED: &str = "recording stopped";

/// Why the last recorder of a channel or trigger has ended; `None` if there was none, or if its trace is
/// complete. It must not run.
pub fn why(definition: &Definition, part: &str) -> Option<String> {
    of_log(&read_to_string(log(definition, part)?).ok()?)
}

/// The newest file with what a recorder has said.
fn log(definition: &Definition, part: &str) -> Option<PathBuf> {
    let starts = read_dir(&definition.output).ok()?.flatten();
    // Their names are their times.
    let newest = starts.map(|start| start.path().join(format!("{part}.log"))).filter(|path| path.is_file());
    newest.max()
}

fn of_log(text: &str) -> Option<String> {
    let mut lines: Vec<&str> = text.lines().collect();
    let summary = lines.last().and_then(|line| serde_json::from_str::<Value>(line).ok());
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
            assert_eq!(of_log(&text).as_deref(), expected, "{text}");
        }
    }
}
