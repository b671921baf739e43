//! Numbers that cannot be: times that are longer than the recording, moments outside of it, more than all.

use serde_json::Value;

/// What a recording has, by `info` and `stats`.
#[derive(Debug)]
pub struct Whole {
    /// From the first stamp to the last, in nanoseconds.
    pub begin: i64,
    pub end: i64,
    pub events: u64,
}

/// What a number may be, by its name.
enum Kind {
    Moment,
    /// How long something lasted, or a thread was in a state.
    Period,
    /// Several of those together.
    Sum,
    /// Of 100.
    Percent,
    Other,
}

/// Members that add up periods of several threads, waits or calls; an event begins each of them.
const SUMS: [&str; 16] = [
    "time_ns",
    "total_ns",
    "self_ns",
    "wait_ns",
    "hold_ns",
    "owner_wait_ns",
    "delay_ns",
    "running_ns",
    "ready_ns",
    "blocked_ns",
    "nested_ns",
    "unknown_ns",
    "user_ns",
    "system_ns",
    "interrupted_ns",
    "ns",
];

fn kind(name: &str) -> Kind {
    let is_moment = ["begin_ns", "end_ns", "woken_ns"].iter().any(|end| name.ends_with(end));
    match name {
        _ if is_moment => Kind::Moment,
        // The limit of a histogram's bin.
        "to_ns" => Kind::Other,
        _ if name.contains("percent") => Kind::Percent,
        _ if SUMS.contains(&name) => Kind::Sum,
        _ if name.ends_with("_ns") => Kind::Period,
        _ => Kind::Other,
    }
}

impl Whole {
    fn allows(&self, kind: &Kind, value: &Value) -> bool {
        let length = self.end.abs_diff(self.begin);
        let at_most = |most: u128| value.as_u64().is_some_and(|ns| u128::from(ns) <= most);
        match kind {
            Kind::Moment => value.as_i64().is_some_and(|time| (self.begin..=self.end).contains(&time)),
            Kind::Period => at_most(length.into()),
            Kind::Sum => at_most(u128::from(length) * u128::from(self.events)),
            Kind::Percent => value.as_f64().is_some_and(|part| (0.0..=100.0).contains(&part)),
            Kind::Other => true,
        }
    }

    /// The numbers in a document that cannot be, with their places.
    pub fn absurd(&self, document: &Value) -> Vec<String> {
        let mut found = Vec::new();
        self.look(document, "", &mut found);
        found
    }

    fn look(&self, value: &Value, place: &str, found: &mut Vec<String>) {
        match value {
            Value::Array(members) => members.iter().for_each(|member| self.look(member, place, found)),
            Value::Object(members) => {
                for (name, member) in members {
                    let place = format!("{place}.{name}");
                    // A line of `sched timehist` has a time, not how long something took.
                    let kind = if place == ".time_ns" { Kind::Moment } else { kind(name) };
                    if member.is_number() && !self.allows(&kind, member) {
                        found.push(format!("{place}: {member}"));
                    }
                    self.look(member, &place, found);
                }
            }
            _ => {}
        }
    }
}
