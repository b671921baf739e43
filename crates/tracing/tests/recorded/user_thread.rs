//! Events of user threads in short.

use super::Event;
use std::collections::BTreeMap;

/// The fields that are shown of an event, in this order.
const FIELDS: [&str; 11] =
    ["thread", "parent", "prev", "next", "name", "runtime", "cause", "kind", "outcome", "object", "worker"];

/// Events that say which origin a user thread has.
const DESCRIBE: [&str; 2] = ["create", "existed"];

/// The same events without origins; the events that refer to one have its fields instead, wherever that was
/// recorded.
pub fn with_origins(events: Vec<Event>) -> Vec<Event> {
    let is_origin = |event: &Event| event.name == "user_thread:origin";
    let (origins, mut events): (Vec<_>, Vec<_>) = events.into_iter().partition(is_origin);
    let origins: BTreeMap<u64, Event> =
        origins.into_iter().map(|event| (event.number("origin"), event)).collect();
    let refers = |event: &&mut Event| {
        event.name.strip_prefix("user_thread:").is_some_and(|name| DESCRIBE.contains(&name))
    };
    for event in events.iter_mut().filter(refers) {
        let origin = event.number("origin");
        let origin = origins.get(&origin).unwrap_or_else(|| panic!("no origin of {event:?}"));
        let fields = origin.payload.as_object().unwrap().clone();
        event.payload.as_object_mut().unwrap().extend(fields);
    }
    events
}

/// The events of provider `user_thread` as lines: name and fields. User threads are shown by the names that
/// they were created with, or their numbers; none is `-`.
pub fn lines_of(events: &[Event]) -> Vec<String> {
    let mut names = BTreeMap::from([(0, "-".to_owned())]);
    let mut lines = Vec::new();
    for event in events {
        let Some(name) = event.name.strip_prefix("user_thread:") else { continue };
        if DESCRIBE.contains(&name) {
            let thread = event.number("thread");
            let created = match event.payload["name"].as_str().unwrap() {
                "" => format!("#{thread}"),
                name => name.to_owned(),
            };
            assert_eq!(names.insert(thread, created), None, "described twice: {event:?}");
        }
        let mut line = name.to_owned();
        for field in FIELDS {
            let value = &event.payload[field];
            let text = match (field, value.as_u64()) {
                _ if value.is_null() => continue,
                ("thread" | "parent" | "prev" | "next", Some(thread)) => {
                    names.get(&thread).cloned().unwrap_or_else(|| "?".to_owned())
                }
                (_, Some(number)) => number.to_string(),
                _ => value["labels"][0].as_str().or(value.as_str()).unwrap().to_owned(),
            };
            line += &format!(" {text}");
        }
        lines.push(line);
    }
    lines
}
