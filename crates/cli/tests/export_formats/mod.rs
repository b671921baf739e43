//! What other programs read in exported files: states of threads and tasks, events and links, each by readers
//! that are not ours.

mod perfetto;

pub use perfetto::perfetto;

use crate::harness::{Printed, RunExt};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Nanoseconds by what they were spent on, as `tracewing threads` calls it.
pub type Times = BTreeMap<&'static str, u64>;

/// What a file says, in terms that all formats have.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Shown {
    /// By `TID` and `PROCESS/TASK`.
    pub times: BTreeMap<String, Times>,
    /// How many events have a name.
    pub events: BTreeMap<String, u64>,
    /// The only field of each `reactivity:received_msg`, by time.
    pub messages: Vec<u64>,
    /// Wakes that lead from one line to another.
    pub links: u64,
    /// The most threads that wait for a CPU.
    pub waiting: u64,
    /// Nanoseconds of functions and of locks, by the line's label and what it says there.
    pub parts: BTreeMap<(String, String), u64>,
    /// Samples by their call chains.
    pub samples: BTreeMap<String, u64>,
    /// The last values of other counters.
    pub counters: BTreeMap<String, u64>,
}

/// The counter of which [`Shown::waiting`] is.
const WAITING: &str = "ready threads";

impl Shown {
    fn state(&mut self, line: &str, state: &str, ns: u64) {
        let what = match state {
            "unknown" => "unknown_ns",
            "preempted" | "ready" => "ready_ns",
            "nested" => "nested_ns",
            "user" | "running" => "running_ns",
            _ if state.starts_with("interrupt") || state.starts_with("spinning on ") => "running_ns",
            _ if state.starts_with("system call ") => "running_ns",
            _ if state.starts_with("blocked") => "blocked_ns",
            _ => panic!("a state `{state}`"),
        };
        *self.times.entry(line.to_owned()).or_default().entry(what).or_default() += ns;
    }

    /// A slice, of a thread or of what belongs to it.
    fn slice(&mut self, label: &str, name: &str, ns: u64) {
        if ["functions", "locks", "more"].contains(&label.split(' ').next().unwrap_or_default()) {
            *self.parts.entry((label.to_owned(), name.to_owned())).or_default() += ns;
        } else {
            self.state(last_word(label), name, ns);
        }
    }

    fn counter(&mut self, name: &str, value: u64) {
        match name {
            WAITING => self.waiting = self.waiting.max(value),
            _ => drop(self.counters.insert(name.to_owned(), value)),
        }
    }

    fn sample<'c>(&mut self, chain: impl Iterator<Item = &'c str>) {
        let chain: Vec<&str> = chain.collect();
        *self.samples.entry(chain.join(" < ")).or_default() += 1;
    }

    fn event(&mut self, name: &str) {
        *self.events.entry(name.to_owned()).or_default() += 1;
    }
}

/// The last word of a label is what is unique.
fn last_word(label: &str) -> &str {
    label.rsplit(' ').next().unwrap_or_default()
}

/// As pajeng's `pj_dump` reads it, which says on standard error that it cannot understand something, and on
/// standard output why.
pub fn paje(file: &Path) -> Shown {
    check_order(&std::fs::read_to_string(file).expect("the file is text"));
    let output = Command::new("pj_dump").args(["-l", "9", "-u"]).arg(file).ran();
    let text = output.text();
    let errors = output.notes();
    assert!(output.status.success() && errors.is_empty(), "pj_dump: {errors}{text}");
    let mut shown = Shown::default();
    for line in text.lines() {
        let words: Vec<&str> = line.split(", ").collect();
        match words[..] {
            ["State", container, kind, begin, end, _, _, ref name @ ..] if kind != "CPU State" => {
                shown.slice(container, &name.join(", "), nanoseconds(end) - nanoseconds(begin));
            }
            ["State", _, "CPU State", ..] | ["Container", ..] => {}
            ["Event", _, "CPU Event", _, name, _] if name.ends_with("lost events") => shown.event(name),
            // A sample's fields are its chain.
            ["Event", _, kind, _, name, chain] if kind.ends_with(" Event") && !chain.starts_with('{') => {
                assert!(chain.starts_with(name), "{line}");
                shown.sample(chain.split(" < "));
            }
            ["Event", _, kind, _, name, ref fields @ ..] if kind.ends_with(" Event") => {
                shown.event(name);
                if name == "reactivity:received_msg" {
                    let [field] = fields else { panic!("fields {fields:?}") };
                    let number = field.strip_prefix("{'message':").and_then(|rest| rest.strip_suffix("}"));
                    shown.messages.push(number.and_then(|number| number.parse().ok()).expect("a number"));
                }
            }
            ["Link", "Machine", _, begin, end, _, "wake", ..] => {
                assert!(nanoseconds(begin) <= nanoseconds(end), "{line}");
                shown.links += 1;
            }
            ["Variable", "Machine", name, _, _, _, value] => {
                let (whole, _) = value.split_once('.').expect("a point");
                shown.counter(name, whole.parse().expect("a count"));
            }
            _ => panic!("pj_dump says `{line}`"),
        }
    }
    shown
}

/// Times never go back in the file, which pajeng asks for within a container only.
fn check_order(text: &str) {
    let mut last = 0;
    let timed = |line: &&str| line.split(' ').next().is_some_and(|kind| matches!(kind.parse(), Ok(6..=14)));
    for line in text.lines().filter(timed) {
        let at = nanoseconds(line.split(' ').nth(1).expect("a time"));
        assert!(at >= last, "{line} comes after {last} ns");
        last = at;
    }
    assert!(last > 0);
}

/// Seconds with nine decimal places.
fn nanoseconds(seconds: &str) -> u64 {
    let (whole, rest) = seconds.split_once('.').expect("a point");
    assert_eq!(rest.len(), 9, "{seconds}");
    whole.parse::<u64>().expect("digits") * 1_000_000_000 + rest.parse::<u64>().expect("digits")
}

/// As any reader of JSON reads it.
pub fn chrome(file: &Path) -> Shown {
    let text = std::fs::read(file).expect("the file can be read");
    let trace: Value = serde_json::from_slice(&text).expect("JSON");
    let events = trace["traceEvents"].as_array().expect("a list");
    let mut shown = Shown::default();
    let mut lines = BTreeMap::new();
    let track = |event: &Value| (event["pid"].as_u64().expect("pid"), event["tid"].as_u64().expect("tid"));
    for event in events.iter().filter(|event| event["name"] == "thread_name") {
        let name = event["args"]["name"].as_str().expect("a name");
        assert_eq!(lines.insert(track(event), name), None, "{event}");
    }
    let (mut begun, mut functions) = (BTreeMap::new(), BTreeMap::new());
    for event in events {
        let at = || micro(&event["ts"]);
        let name = event["name"].as_str().unwrap_or_default();
        match event["ph"].as_str().expect("a phase") {
            "M" => {}
            "X" => {
                // The process that has this number stands for CPUs.
                if track(event).0 != 4 << 20 {
                    shown.slice(lines[&track(event)], name, micro(&event["dur"]));
                }
            }
            "B" => functions.entry(track(event)).or_insert_with(Vec::new).push((name, at())),
            "E" => {
                let (name, begin) = functions.get_mut(&track(event)).and_then(Vec::pop).expect("a begin");
                shown.slice(lines[&track(event)], name, at() - begin);
            }
            "i" if event["cat"] == "sample" => {
                let chain = event["args"]["chain"].as_array().expect("a chain");
                assert_eq!(chain[0], name);
                shown.sample(chain.iter().map(|name| name.as_str().expect("a name")));
            }
            "i" => {
                shown.event(name);
                if name == "reactivity:received_msg" {
                    shown.messages.push(event["args"]["message"].as_u64().expect("a number"));
                }
            }
            "s" => assert_eq!(begun.insert(event["id"].as_u64(), at()), None),
            "f" => {
                assert!(begun.remove(&event["id"].as_u64()).is_some_and(|begin| begin <= at()));
                shown.links += 1;
            }
            "C" => shown.counter(name, event["args"]["value"].as_u64().expect("a count")),
            other => panic!("phase {other}"),
        }
    }
    assert!(begun.is_empty() && functions.values().all(Vec::is_empty));
    shown
}

/// Microseconds with three decimal places, as nanoseconds.
fn micro(value: &Value) -> u64 {
    (value.as_f64().expect("a number") * 1000.0).round() as u64
}
