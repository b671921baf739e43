//! Shared code of tests of recordings: records this program, and reads the result with `tracewing list` and
//! babeltrace2.

#![allow(dead_code, reason = "each test file uses its part")]

#[path = "user_thread.rs"]
mod user_thread;
#[allow(unused_imports, reason = "each test file uses its part")]
pub use user_thread::{lines_of, with_origins};

use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tracewing::{Session, SessionBuilder};
use tracewing_trace::{JsonPrinter, Merge, Message, Recording, TimeRange};

/// An event of a trace.
#[derive(Debug, Clone)]
pub struct Event {
    pub name: String,
    pub tid: i64,
    pub payload: Value,
}

impl Event {
    pub fn number(&self, field: &str) -> u64 {
        self.payload[field].as_u64().unwrap_or_else(|| panic!("{field} of {self:?}"))
    }
}

/// One test at a time: a recording covers the whole program.
pub fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Records what `body` does; also events of other tests that run at the same time unless they are [`alone`],
/// too.
pub fn record(events: &[&str], body: impl FnOnce()) -> Vec<Event> {
    let session = events.iter().fold(Session::builder(), |builder, pattern| builder.event(*pattern));
    record_with(session, body)
}

pub fn record_with(session: SessionBuilder, body: impl FnOnce()) -> Vec<Event> {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("t");
    let session = session.output(&trace).start().unwrap();
    body();
    let summary = session.stop().unwrap();
    assert_eq!(summary.lost, 0);
    let events = read(&trace);
    compare_with_babeltrace2(&trace, events.len());
    with_origins(events.into_iter().filter(|event| event.name != "tracewing:thread").collect())
}

/// All events of a trace.
pub fn read(trace: &Path) -> Vec<Event> {
    let recording = Recording::open(&[trace]).unwrap();
    let mut merge = Merge::new(&recording, TimeRange::ALL);
    let (mut printer, mut events) = (JsonPrinter::new(), Vec::new());
    while let Some(message) = merge.advance().unwrap() {
        let Message::Event(event) = message else { panic!("lost events") };
        let mut line = Vec::new();
        printer.event(&mut line, &event);
        let mut event: Value = serde_json::from_slice(&line).unwrap();
        events.push(Event {
            name: event["event"].as_str().unwrap().to_owned(),
            tid: event["common_context"]["tid"].as_i64().unwrap(),
            payload: event["payload"].take(),
        });
    }
    events
}

fn compare_with_babeltrace2(trace: &Path, events: usize) {
    let Ok(peer) = Command::new("babeltrace2").arg(trace).output() else {
        return tracewing_testing::skip(
            tracewing_testing::Cause::Program("babeltrace2"),
            "babeltrace2 is not installed",
        );
    };
    assert_eq!(String::from_utf8_lossy(&peer.stderr), "");
    let text = String::from_utf8(peer.stdout).unwrap();
    assert_eq!(text.lines().filter(|line| line.starts_with('[')).count(), events, "{text}");
}

/// The events with this name.
pub fn named<'a>(events: &'a [Event], name: &str) -> Vec<&'a Event> {
    events.iter().filter(|event| event.name == name).collect()
}

/// The only event with this name.
#[track_caller]
pub fn only<'a>(events: &'a [Event], name: &str) -> &'a Event {
    match named(events, name)[..] {
        [event] => event,
        _ => panic!("not one {name} in {events:#?}"),
    }
}

/// Names and spans of the events; spans are numbered in the order of appearance.
pub fn outline(events: &[Event]) -> Vec<String> {
    let mut ids: Vec<u64> = vec![0];
    let mut outline = Vec::new();
    for event in events {
        let mut line = event.name.clone();
        for field in ["span", "parent", "follows"] {
            if let Some(id) = event.payload[field].as_u64() {
                let at = ids.iter().position(|known| *known == id).unwrap_or_else(|| {
                    ids.push(id);
                    ids.len() - 1
                });
                line += &format!(" {field}={at}");
            }
        }
        outline.push(line);
    }
    outline
}
