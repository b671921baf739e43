//! Programs' own events, by provider, and their spans; samples; and events that say what a counter has.
//!
//! Events whose meaning the vocabulary knows have tracks of another kind, and are left out here.

use crate::builder::Builder;
use crate::counters::{Counters, Counts};
use crate::row::RowKind;
use crate::table::{Table, split};
use std::collections::HashMap;
use tracewing_timeline::{Class as Kind, StateId, States, TrackId};
use tracewing_trace::super_trace::{Located, Lwp, SuperTrace};
use tracewing_trace::{Classes, EventRef, Places};
use tracewing_units::{SpanNumber, Tid, Timestamp};
use tracewing_vocabulary::kernel::CpuFrequency;
use tracewing_vocabulary::profile::{Counters as Counted, Sample};
use tracewing_vocabulary::span::{Begin, Close, End, Enter, Exit, Follows, New, Record};
use tracewing_vocabulary::{Class as Known, function, kernel, own};

/// Spans within so many others have no row, nor have the events of further providers of a thread.
const MOST: usize = 64;

/// What an event class means here.
#[derive(Debug)]
enum Meaning {
    Event,
    Sample,
    /// A thread comes into a span, or leaves it.
    Span(Places),
    /// What counters have counted.
    Counts,
    /// The clock of a CPU changes.
    Frequency(Places),
}

/// What is known of an event class, for states and rows.
#[derive(Debug, Clone)]
enum Class {
    /// An event of a provider.
    Event {
        provider: Box<str>,
        name: Box<str>,
        state: Option<StateId>,
    },
    Sample {
        name: Box<str>,
        state: Option<StateId>,
    },
    /// A thread comes into a span; `begins`: which begins with it.
    Enters {
        name: Box<str>,
        begins: bool,
        state: Option<StateId>,
    },
    /// A thread leaves a span; `ends`: which ends with it.
    Leaves {
        ends: bool,
    },
    /// Counters and frequencies.
    Counter,
}

/// What an event says.
#[derive(Debug)]
enum Said {
    Itself,
    Span(Option<Enter>),
    Counts(Box<Counts>),
    Frequency(Option<CpuFrequency>),
}

/// What was read of an event, on whichever thread.
#[derive(Debug)]
pub(crate) struct OwnRead {
    /// Number of its class, in the order in which classes occur.
    class: u32,
    /// What is known of its class, with its first event.
    new: Option<Box<Class>>,
    said: Said,
}

/// Reads events, and remembers their classes.
#[derive(Debug, Default)]
pub(crate) struct OwnReader {
    /// `None` for events that say nothing here.
    classes: Classes<Option<(u32, Meaning)>>,
    count: u32,
}

impl OwnReader {
    /// Whether events of this class say something here.
    pub(crate) fn knows(&self, event: &EventRef<'_>) -> bool {
        meaning(event.decoded().class().name.as_deref().unwrap_or_default(), event).is_some()
    }

    pub(crate) fn read(&mut self, event: &EventRef<'_>) -> Option<OwnRead> {
        let (mut new, count) = (None, &mut self.count);
        let known = self.classes.of(event, |event| {
            let name = event.decoded().class().name.as_deref().unwrap_or_default();
            let (meaning, class) = meaning(name, event)?;
            new = Some(Box::new(class));
            *count += 1;
            Some((*count - 1, meaning))
        });
        let (class, meaning) = known.as_ref()?;
        let said = match meaning {
            Meaning::Event | Meaning::Sample => Said::Itself,
            // Both have the same fields.
            Meaning::Span(places) => Said::Span(places.read(event)),
            Meaning::Counts => Said::Counts(Box::new(Counts::of(event))),
            Meaning::Frequency(places) => Said::Frequency(places.read(event)),
        };
        Some(OwnRead { class: *class, new, said })
    }
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

/// An event that belongs to a thread.
#[derive(Debug, Clone)]
struct Happened<C> {
    class: C,
    span: Option<SpanNumber>,
    time: Timestamp,
}

/// Follows the events and spans of programs.
#[derive(Debug, Default)]
pub(crate) struct Own {
    classes: Vec<Class>,
    /// The first event of a thread that nothing has reported before: the thread is known after it. It has its
    /// class with it, as the recording may be opened anew before that.
    first: Option<(Tid, Happened<Class>)>,
    rows: Rows,
}

/// What threads have.
#[derive(Debug, Default)]
struct Rows {
    /// By the row of the thread: rows by provider, rows of spans by depth, and the spans that it is in.
    providers: HashMap<TrackId, Vec<(Box<str>, TrackId)>>,
    spans: HashMap<TrackId, Vec<TrackId>>,
    samples: HashMap<TrackId, TrackId>,
    open: HashMap<TrackId, Vec<Open>>,
}

impl Own {
    /// Notes what is known of a class, if the event is its first.
    pub(crate) fn learn(&mut self, read: &mut OwnRead) {
        if let Some(new) = read.new.take() {
            self.classes.push(*new);
        }
    }

    /// Handles an event whose class is known.
    pub(crate) fn event(
        &mut self,
        OwnRead { class, said, .. }: OwnRead,
        at: &Located<'_>,
        states: &mut States<Builder<'_>>,
        counters: &mut Counters,
    ) {
        let class = &mut self.classes[class as usize];
        class.number(&mut states.sink.table);
        let Some(activity) = at.activity else { return };
        let time = activity.time;
        let span = match said {
            Said::Counts(counts) => return counters.counted(*counts, time, states),
            Said::Frequency(frequency) => return counters.frequency(frequency, time, states),
            Said::Itself => None,
            Said::Span(enters) => enters.map(|Enter { span }| span),
        };
        match (at.place.tid, at.place.lwp) {
            (Some(tid), Some(lwp)) => {
                self.rows.happened(
                    Happened { class: &*class, span, time },
                    states.lwp_track(lwp, tid),
                    states,
                );
            }
            (Some(tid), None) => self.first = Some((tid, Happened { class: class.clone(), span, time })),
            (None, _) => {}
        }
    }

    /// Handles the last event, if it was the first one of a thread that is known in the state after it.
    #[inline]
    pub(crate) fn settle(&mut self, after: &SuperTrace, states: &mut States<Builder<'_>>) {
        if let Some((tid, _)) = &self.first {
            match after.lwp(*tid) {
                Some(lwp) => self.did(lwp, states),
                None => self.first = None,
            }
        }
    }

    /// Does the same if a thread is that one.
    #[inline]
    pub(crate) fn did(&mut self, lwp: &Lwp, states: &mut States<Builder<'_>>) {
        if let Some((_, Happened { class, span, time })) = self.first.take_if(|(tid, _)| *tid == lwp.tid) {
            let happened = Happened { class: &class, span, time };
            self.rows.happened(happened, states.lwp_track(lwp.serial, lwp.tid), states);
        }
    }

    /// The recording is opened anew: its streams and classes may have other numbers.
    pub(crate) fn reopen(&mut self) {
        self.classes.clear();
    }

    /// Another one, of which only the last event is known: it can be closed while this one continues.
    pub(crate) fn same(&self) -> Self {
        Own { first: self.first.clone(), ..Own::default() }
    }

    /// Events of programs were lost after a time.
    pub(crate) fn lost(&mut self, from: Timestamp) {
        for open in self.rows.open.values_mut().flatten() {
            open.lost.get_or_insert(from);
        }
    }
}

impl Rows {
    fn happened(
        &mut self,
        Happened { class, span, time }: Happened<&Class>,
        of: TrackId,
        states: &mut States<Builder<'_>>,
    ) {
        match class {
            Class::Event { provider, state: Some(state), .. } => {
                if let Some(row) = row_of(self.providers.entry(of).or_default(), provider, of, states) {
                    states.sink.happened(row, *state, time);
                }
            }
            Class::Sample { state: Some(state), .. } => {
                let builder = &mut states.sink;
                let new = || builder.part(RowKind::Samples, "", of);
                let row = *self.samples.entry(of).or_insert_with(new);
                states.sink.happened(row, *state, time);
            }
            Class::Enters { begins, state: Some(state), .. } => {
                let Some(span) = span else { return };
                let open = self.open.entry(of).or_default();
                let is_free = |depth: &usize| open.iter().all(|open| open.depth != *depth);
                let depth = (0..).find(is_free).unwrap_or(MOST);
                let (state, begins) = (*state, *begins);
                if depth < MOST {
                    open.push(Open { span, state, begins, depth, from: time, lost: None });
                }
            }
            Class::Leaves { ends } => {
                let Some(span) = span else { return };
                let ends = *ends;
                self.leaves(of, span, ends, time, states);
            }
            Class::Event { .. } | Class::Sample { .. } | Class::Enters { .. } | Class::Counter => {}
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

impl Class {
    /// Numbers the states of its events.
    fn number(&mut self, table: &mut Table) {
        match self {
            Class::Event { name, state: state @ None, .. } | Class::Sample { name, state: state @ None } => {
                *state = Some(table.own(Kind::Event, name));
            }
            Class::Enters { name, state: state @ None, .. } => *state = Some(table.own(Kind::Call, name)),
            _ => {}
        }
    }
}

/// What a class means; `None` if its events say nothing here.
fn meaning(name: &str, event: &EventRef<'_>) -> Option<(Meaning, Class)> {
    if let Some((Known::Kernel(kernel::Class::CpuFrequency), places)) = tracewing_trace::known(event) {
        return Some((Meaning::Frequency(places), Class::Counter));
    }
    if name == Counted::NAME {
        return Some((Meaning::Counts, Class::Counter));
    }
    // Only events of programs have a provider in their names.
    let (provider, _) = split(name)?;
    if name == Sample::NAME {
        return Some((Meaning::Sample, Class::Sample { name: name.into(), state: None }));
    }
    let is_known = Known::of_name(name).is_some() && name != own::Panic::NAME;
    if is_known || provider == function::PROVIDER {
        return None;
    }
    let suffix = |suffix: &str| name.strip_suffix(suffix);
    if let Some(places) = Places::of_fields(event, Enter::FIELDS) {
        for (suffixed, begins) in [(suffix(Begin::NAME), true), (suffix(Enter::NAME), false)] {
            if let Some(name) = suffixed {
                let class = Class::Enters { name: name.into(), begins, state: None };
                return Some((Meaning::Span(places), class));
            }
        }
        for (suffixed, ends) in [(suffix(End::NAME), true), (suffix(Exit::NAME), false)] {
            if suffixed.is_some() {
                return Some((Meaning::Span(places), Class::Leaves { ends }));
            }
        }
        if [New::NAME, Close::NAME, Record::NAME, Follows::NAME].into_iter().any(|end| name.ends_with(end)) {
            return None;
        }
    }
    let class = Class::Event { provider: provider.into(), name: name.into(), state: None };
    Some((Meaning::Event, class))
}
