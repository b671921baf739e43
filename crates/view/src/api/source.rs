//! Where the classes of events are declared in the source of programs.

use super::ask::{Refusal, refused};
use super::fields::Event;
use crate::events::listed;
use std::collections::{HashMap, HashSet, VecDeque};
use std::ops::ControlFlow;
use tracewing_trace::{Filter, Recording};
use tracewing_units::Timestamp;

/// The sources of classes by name: those of one name may differ.
type Sources<'s> = HashMap<&'s str, HashSet<Option<String>>>;

/// Finds them for the first or the last events that a filter lets through, whose times count from `begin`.
pub(super) fn find(
    recording: &Recording,
    filter: &Filter,
    last: bool,
    begin: Timestamp,
    events: &mut [Event],
) -> Result<(), Refusal> {
    let sources = sources(recording, events);
    let one = |name: &str| sources.get(name).filter(|all| all.len() == 1);
    let found: Vec<Option<String>> = match events.iter().all(|event| one(&event.name).is_some()) {
        true => events.iter().map(|event| one(&event.name)?.iter().next()?.clone()).collect(),
        false => one_by_one(recording, filter, last, begin, events)?,
    };
    events.iter_mut().zip(found).for_each(|(event, source)| event.source = source);
    Ok(())
}

fn sources<'r>(recording: &'r Recording, events: &[Event]) -> Sources<'r> {
    let names: HashSet<&str> = events.iter().map(|event| event.name.as_str()).collect();
    let mut sources = Sources::new();
    for trace in recording.traces() {
        let streams = trace.class().data_stream_classes.iter();
        for class in streams.flat_map(|stream| &stream.event_record_classes) {
            let name = class.name.as_deref().unwrap_or_default();
            if names.contains(name) {
                sources.entry(name).or_default().insert(trace.source(class.id));
            }
        }
    }
    sources
}

/// Reads the events once more: their names do not say which class each belongs to. If they are others now, of
/// a recording that grows, nothing is known.
fn one_by_one(
    recording: &Recording,
    filter: &Filter,
    last: bool,
    begin: Timestamp,
    events: &[Event],
) -> Result<Vec<Option<String>>, Refusal> {
    let (mut found, mut is_full) = (VecDeque::new(), false);
    let read = listed(recording, filter, &mut |_| ControlFlow::Continue(()), &mut |event| {
        let (class, at) = (event.decoded().class(), event.stamp().map(|stamp| stamp.time - begin));
        let name = class.name.clone().unwrap_or_default();
        found.push_back(((at, name), event.trace().source(class.id)));
        is_full = !last && found.len() == events.len();
        if found.len() > events.len() {
            found.pop_front();
        }
        if is_full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    read.or_else(|why| if is_full { Ok(()) } else { Err(refused(&why)) })?;
    let expected = events.iter().map(|event| (event.at, event.name.as_str()));
    let is_same = found.iter().map(|((at, name), _)| (*at, name.as_str())).eq(expected);
    let sources = found.into_iter().map(|(_, source)| source);
    Ok(if is_same { sources.collect() } else { vec![None; events.len()] })
}
