//! Programs' own events, by provider, and their spans; samples; and events that say what a counter has.
//!
//! Events whose meaning the vocabulary knows have tracks of another kind, and are left out here.

use crate::builder::Builder;
use crate::counters::Counters;
use crate::row::RowKind;
use crate::table::split;
use std::collections::HashMap;
use tracewing_timeline::{Class, StateId, States, TrackId};
use tracewing_trace::super_trace::Seen;
use tracewing_trace::{Classes, EventRef, Places};
use tracewing_units::{SpanNumber, Timestamp};
use tracewing_vocabulary::profile::{Counters as Counted, Sample};
use tracewing_vocabulary::span::{Begin, Close, End, Enter, Exit, Follows, New, Record};
use tracewing_vocabulary::{Class as Known, function, kernel, own};

/// Spans within so many others have no row, nor have the events of further providers of a thread.
const MOST: usize = 64;

/// What an event class means here.
#[derive(Debug)]
enum Meaning {
    Event {
        provider: Box<str>,
        state: StateId,
    },
    Sample {
        state: StateId,
    },
    /// A thread comes into a span; `begins`: which begins with it.
    Enters {
        state: StateId,
        begins: bool,
        places: Places,
    },
    /// A thread leaves a span; `ends`: which ends with it.
    Leaves {
        ends: bool,
        places: Places,
    },
    /// What counters have counted.
    Counts,
    /// The clock of a CPU changes.
    Frequency {
        places: Places,
    },
    Nothing,
}

/// A span that a thread is in.
#[derive(Debug)]
struct Open {
    span: SpanNumber,
    state: StateId,
    begins: bool,
    depth: usize,
    from: Timestamp,
    /// When events were lost since then: it may have been left, and entered again.
    lost: Option<Timestamp>,
}

/// Follows the events and spans of programs.
#[derive(Debug, Default)]
pub(crate) struct Own {
    classes: Classes<Meaning>,
    /// By the row of the thread: rows by provider, rows of spans by depth, and the spans that it is in.
    providers: HashMap<TrackId, Vec<(Box<str>, TrackId)>>,
    spans: HashMap<TrackId, Vec<TrackId>>,
    samples: HashMap<TrackId, TrackId>,
    open: HashMap<TrackId, Vec<Open>>,
}

impl Own {
    pub(crate) fn event(
        &mut self,
        seen: &Seen<'_>,
        states: &mut States<Builder<'_>>,
        counters: &mut Counters,
    ) {
        let table = &mut states.sink.table;
        let meaning = self.classes.of(seen.event, |event| {
            let name = event.decoded().class().name.as_deref().unwrap_or_default();
            meaning(name, event, &mut |class, name| table.own(class, name))
        });
        let Some(activity) = seen.activity else { return };
        let time = activity.time;
        match meaning {
            Meaning::Counts => return counters.counted(seen.event, time, states),
            Meaning::Frequency { places } => {
                return counters.frequency(places.read(seen.event), time, states);
            }
            _ => {}
        }
        let (Some(tid), Some(lwp)) = (seen.place.tid, seen.place.lwp) else { return };
        match meaning {
            Meaning::Nothing | Meaning::Counts | Meaning::Frequency { .. } => {}
            Meaning::Event { provider, state } => {
                let of = states.lwp_track(lwp, tid);
                if let Some(row) = row_of(self.providers.entry(of).or_default(), provider, of, states) {
                    states.sink.happened(row, *state, time);
                }
            }
            Meaning::Sample { state } => {
                let (of, builder) = (states.lwp_track(lwp, tid), &mut states.sink);
                let new = || builder.part(RowKind::Samples, "", of);
                let row = *self.samples.entry(of).or_insert_with(new);
                states.sink.happened(row, *state, time);
            }
            Meaning::Enters { state, begins, places } => {
                let Some(Enter { span }) = places.read(seen.event) else { return };
                let open = self.open.entry(states.lwp_track(lwp, tid)).or_default();
                let is_free = |depth: &usize| open.iter().all(|open| open.depth != *depth);
                let depth = (0..).find(is_free).unwrap_or(MOST);
                let (state, begins) = (*state, *begins);
                if depth < MOST {
                    open.push(Open { span, state, begins, depth, from: time, lost: None });
                }
            }
            Meaning::Leaves { ends, places } => {
                let Some(Exit { span }) = places.read(seen.event) else { return };
                let ends = *ends;
                self.leaves(states.lwp_track(lwp, tid), span, ends, time, states);
            }
        }
    }

    /// A thread leaves a span.
    fn leaves(
        &mut self,
        of: TrackId,
        span: SpanNumber,
        ends: bool,
        time: Timestamp,
        states: &mut States<Builder<'_>>,
    ) {
        let Some(open) = self.open.get_mut(&of) else { return };
        let Some(at) = open.iter().rposition(|open| open.span == span) else { return };
        let Open { state, begins, depth, from, lost, .. } = open.remove(at);
        // One that begins and ends there was never left in between. Of others, only a part is certain.
        let to = if begins && ends { time } else { lost.unwrap_or(time) };
        let (rows, builder) = (self.spans.entry(of).or_default(), &mut states.sink);
        while rows.len() <= depth {
            let row = builder.part(RowKind::Spans(rows.len() as u32), "", of);
            rows.push(row);
        }
        builder.did(rows[depth], state, from, to);
    }

    /// The recording is opened anew: its streams and classes may have other numbers.
    pub(crate) fn reopen(&mut self) {
        self.classes = Classes::default();
    }

    /// Events of programs were lost after a time.
    pub(crate) fn lost(&mut self, from: Timestamp) {
        for open in self.open.values_mut().flatten() {
            open.lost.get_or_insert(from);
        }
    }
}

/// The row of a thread's events of a provider; `None` if there are too many.
fn row_of(
    rows: &mut Vec<(Box<str>, TrackId)>,
    provider: &str,
    of: TrackId,
    states: &mut States<Builder<'_>>,
) -> Option<TrackId> {
    if let Some((_, row)) = rows.iter().find(|(known, _)| **known == *provider) {
        return Some(*row);
    }
    let number = rows.len();
    (number < MOST).then(|| {
        let row = states.sink.part(RowKind::Events(number as u32), provider, of);
        rows.push((provider.into(), row));
        row
    })
}

/// What a class means; `state` numbers states.
fn meaning(name: &str, event: &EventRef<'_>, state: &mut dyn FnMut(Class, &str) -> StateId) -> Meaning {
    if let Some((Known::Kernel(kernel::Class::CpuFrequency), places)) = tracewing_trace::known(event) {
        return Meaning::Frequency { places };
    }
    if name == Counted::NAME {
        return Meaning::Counts;
    }
    // Only events of programs have a provider in their names.
    let Some((provider, _)) = split(name) else { return Meaning::Nothing };
    if name == Sample::NAME {
        return Meaning::Sample { state: state(Class::Event, name) };
    }
    let is_known = Known::of_name(name).is_some() && name != own::Panic::NAME;
    if is_known || provider == function::PROVIDER {
        return Meaning::Nothing;
    }
    let suffix = |suffix: &str| name.strip_suffix(suffix);
    if let Some(places) = Places::of_fields(event, Enter::FIELDS) {
        for (suffixed, begins) in [(suffix(Begin::NAME), true), (suffix(Enter::NAME), false)] {
            if let Some(name) = suffixed {
                return Meaning::Enters { state: state(Class::Call, name), begins, places };
            }
        }
        for (suffixed, ends) in [(suffix(End::NAME), true), (suffix(Exit::NAME), false)] {
            if suffixed.is_some() {
                return Meaning::Leaves { ends, places };
            }
        }
        if [New::NAME, Close::NAME, Record::NAME, Follows::NAME].into_iter().any(|end| name.ends_with(end)) {
            return Meaning::Nothing;
        }
    }
    Meaning::Event { provider: provider.into(), state: state(Class::Event, name) }
}
