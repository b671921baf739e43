//! Number, rate and size of events: by class, by stream, and by process, with losses.
//!
//! Streams are counted one by one, by as many threads as there are CPUs; the result does not depend on their
//! number.

use crate::Error;
use crate::merge::stream_events::StreamEvents;
use crate::open::gone::GoneTrace;
use crate::open::recording::{Recording, Trace};
use crate::select::decisions::{Decisions, StreamDecisions};
use crate::select::filter::Filter;
use crate::select::selection::Selection;
use crate::stream::losses::Losses;
use crate::threads::start;
use crate::time::range::TimeRange;
use std::collections::{BTreeMap, HashMap};
use std::iter::repeat_n;
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, Builder};
use tracewing_ctf::decode::{Event, MemberHandle, Value};
use tracewing_ctf::model::{EnvValue, Scope};
use tracewing_units::{Cycles, Duration, Timestamp};
use tracewing_vocabulary::{context, environment};
use tracewing_vocabulary::{own, recorder};

/// Numbers of events of a recording: by class, by stream and by process.
#[derive(Debug, Default)]
pub struct Statistics {
    /// From the first of the counted events to the last, in nanoseconds; `None` without a stamped event.
    pub duration_ns: Option<Duration>,
    /// When the first and the last of them happened; `None` without a stamped event.
    pub range: Option<(Timestamp, Timestamp)>,
    /// Sum of all counted events, whatever their class, stream and process.
    pub total: Count,
    /// How many of these repeat the state ([`Recording::state_events`]); `None` if that is unknown, or if the
    /// filter leaves out something.
    pub state_events: Option<u64>,
    /// By trace and name, the most frequent first; classes without events are left out.
    pub events: Vec<ClassCount>,
    /// In the order of [`Recording::streams`], then those of traces that are gone.
    pub streams: Vec<StreamCount>,
    /// By process id, the busiest first. Events whose process is unknown are listed under none.
    pub processes: Vec<ProcessCount>,
    /// What could not be read; everything before it is counted.
    pub errors: Vec<Error>,
}

/// Events, and what they take.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Count {
    /// Number of events.
    pub events: u64,
    /// Their bytes with headers and contexts.
    pub bytes: u64,
}

/// The events of a class.
#[derive(Debug, PartialEq)]
pub struct ClassCount {
    /// The trace's name.
    pub trace: String,
    /// The class's name.
    pub name: String,
    /// Number and size of its events.
    pub count: Count,
}

/// The events of a stream.
#[derive(Debug, PartialEq)]
pub struct StreamCount {
    /// The trace's name.
    pub trace: String,
    /// The stream's class id, then its id.
    pub stream: String,
    /// Number and size of its events.
    pub count: Count,
    /// What it has lost.
    pub lost: Losses,
}

/// The events of a process.
#[derive(Debug, PartialEq)]
pub struct ProcessCount {
    /// Process id; `None` for events whose process no event shows.
    pub process: Option<i64>,
    /// Its events.
    pub count: Count,
}

impl Count {
    #[inline]
    fn add(&mut self, other: Count) {
        self.events += other.events;
        self.bytes += other.bytes;
    }

    /// Events per second over a period in nanoseconds; `None` for a period of 0.
    pub fn per_second(&self, duration: Option<Duration>) -> Option<f64> {
        let duration = duration.filter(|duration| !duration.is_zero())?;
        Some(self.events as f64 * 1e9 / duration.as_ns() as f64)
    }
}

impl Statistics {
    /// Counts the events that are chosen.
    ///
    /// # Errors
    /// [`Error::Usage`] where the filter makes no sense for the recording. What cannot be read is no error:
    /// it is in [`Statistics::errors`].
    pub fn collect(recording: &Recording, filter: &Filter) -> Result<Self, Error> {
        Self::collect_with(recording, filter, Builder::new)
    }

    /// Counts them with as many threads as there are CPUs, this one among them; `new` makes the others.
    fn collect_with(recording: &Recording, filter: &Filter, new: fn() -> Builder) -> Result<Self, Error> {
        let range = filter.range(recording)?;
        let decisions = Decisions::of(filter, range, recording, &mut || ControlFlow::Continue(()))?;
        let next = AtomicUsize::new(0);
        let streams = recording.streams().len();
        let counted = Mutex::new(BTreeMap::new());
        let threads = thread::available_parallelism().map_or(1, usize::from).min(streams);
        let work = || {
            loop {
                // Which thread takes which stream changes nothing.
                let stream = next.fetch_add(1, Ordering::Relaxed);
                if stream >= streams {
                    return;
                }
                let Ok(mut selection) = Selection::new(filter, recording) else { return };
                let first = decisions.read_from().unwrap_or(range.begin);
                let events = recording.events_from(stream, first, range.begin);
                let decisions = decisions.of_stream(stream, recording, &mut selection);
                let tally = Tally::of(recording, stream, range, events, decisions);
                if let Ok(mut counted) = counted.lock() {
                    counted.insert(stream, tally);
                }
            }
        };
        thread::scope(|scope| {
            start(scope, new, repeat_n(&work, threads.saturating_sub(1)));
            work();
        });
        let counted = counted.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        Ok(Self::gather(recording, filter, counted, range))
    }

    /// What all streams have lost together.
    pub fn lost(&self) -> Losses {
        self.streams.iter().fold(Losses::default(), |sum, stream| sum.and(stream.lost))
    }

    fn gather(
        recording: &Recording,
        filter: &Filter,
        tallies: BTreeMap<usize, Tally>,
        asked: TimeRange,
    ) -> Self {
        let mut statistics = Statistics::default();
        let (mut classes, mut processes) = (HashMap::<_, Count>::new(), HashMap::<_, Count>::new());
        let mut range: Option<(Timestamp, Timestamp)> = None;
        statistics.state_events = recording.state_events().filter(|_| filter.is_whole());
        let owners = owners(recording, &tallies);
        for (index, tally) in tallies {
            let stream = &recording.streams()[index];
            let trace = &recording.traces()[stream.trace_index()];
            let mut all = Count::default();
            let class = trace.class().data_stream_class(stream.class_id());
            for (at, count) in tally.classes.iter().enumerate().filter(|(_, count)| count.events > 0) {
                let class = class.and_then(|class| class.event_record_classes.get(at));
                let name = class.and_then(|class| class.name.clone()).unwrap_or_default();
                classes.entry((stream.trace_index(), name)).or_default().add(*count);
                all.add(*count);
            }
            for (actor, count) in tally.actors {
                let owner = |thread| owners.get(&(stream.trace_index(), thread)).copied();
                processes.entry(actor.process(trace, owner)).or_default().add(count);
            }
            statistics.total.add(all);
            // An extract has events of other CPUs that explain its own.
            let may_miss = filter.may_miss(stream);
            if may_miss || all.events > 0 {
                let lost = || tally.lost.and(recording.lost_besides(stream, asked));
                statistics.streams.push(StreamCount {
                    trace: trace.name().to_owned(),
                    stream: format!("{}:{}", stream.class_id(), stream.id()),
                    count: all,
                    lost: may_miss.then(lost).unwrap_or_default(),
                });
            }
            let ranges = [range, tally.range].into_iter().flatten();
            range = ranges.reduce(|all, one| (all.0.min(one.0), all.1.max(one.1)));
            statistics.errors.extend(tally.error);
        }
        statistics.streams.extend(recording.gone().iter().flat_map(|trace| gone(trace, asked)));
        statistics.duration_ns = range.map(|(first, last)| last - first);
        statistics.range = range;
        let name = |trace: usize| recording.traces()[trace].name().to_owned();
        let classes = classes.into_iter();
        statistics.events = classes
            .map(|((trace, class), count)| ClassCount { trace: name(trace), name: class, count })
            .collect();
        statistics
            .events
            .sort_by(|a, b| (b.count.events, &a.trace, &a.name).cmp(&(a.count.events, &b.trace, &b.name)));
        let processes = processes.into_iter().filter(|(_, count)| count.events > 0);
        statistics.processes = processes.map(|(process, count)| ProcessCount { process, count }).collect();
        statistics.processes.sort_by_key(|row| (std::cmp::Reverse(row.count.events), row.process));
        statistics
    }
}

/// The streams of a trace that is gone. How many of their events were in a part of the time is unknown.
fn gone(trace: &GoneTrace, asked: TimeRange) -> impl Iterator<Item = StreamCount> {
    trace.streams.iter().map(move |stream| StreamCount {
        trace: trace.name.clone(),
        stream: stream.label(),
        count: Count::default(),
        lost: match asked == TimeRange::ALL {
            true => stream.lost,
            false => Losses::of_events(None),
        },
    })
}

/// The process of each thread of a trace. It may be recorded in another stream than the thread's events.
fn owners(recording: &Recording, tallies: &BTreeMap<usize, Tally>) -> HashMap<(usize, i64), i64> {
    let of_streams = tallies.iter().flat_map(|(stream, tally)| {
        let trace = recording.streams()[*stream].trace_index();
        tally.owners.iter().map(move |(thread, process)| ((trace, *thread), *process))
    });
    of_streams.collect()
}

/// The thread or process of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Actor {
    Process(i64),
    Thread(i64),
    Unknown,
}

impl Actor {
    /// Its process, if that is known.
    fn process(self, trace: &Trace, owner: impl Fn(i64) -> Option<i64>) -> Option<i64> {
        match self {
            Actor::Process(process) => Some(process),
            Actor::Thread(thread) => owner(thread),
            Actor::Unknown => match trace.class().env(environment::VPID) {
                Some(EnvValue::Integer(process)) => Some(*process),
                _ => None,
            },
        }
    }
}

#[derive(Debug, Default)]
struct Tally {
    /// By the index of the class.
    classes: Vec<Count>,
    actors: HashMap<Actor, Count>,
    /// The processes of threads, from tracewing's `thread` events.
    owners: HashMap<i64, i64>,
    lost: Losses,
    range: Option<(Timestamp, Timestamp)>,
    error: Option<Error>,
}

impl Tally {
    fn of(
        recording: &Recording,
        index: usize,
        range: TimeRange,
        mut events: StreamEvents,
        mut decisions: StreamDecisions<'_>,
    ) -> Self {
        let stream = &recording.streams()[index];
        let mut tally = Tally::default();
        let mut member = None;
        // Runs of events of one thread are the rule.
        let (mut actor, mut run) = (Actor::Unknown, Count::default());
        let mut first = None;
        let mut last = None;
        let mut count = |event: Event<'_>, tally: &mut Tally| {
            let class = event.class_index();
            // OwnerField thread it is counts for others too.
            if matches!(event.class().name.as_deref(), Some(own::Thread::NAME | recorder::KnownThread::NAME))
            {
                tally.note_owner(&event);
            }
            if !decisions.takes(&event) {
                return;
            }
            let one = Count { events: 1, bytes: event.bits().div_ceil(8) };
            if tally.classes.len() <= class {
                tally.classes.resize(class + 1, Count::default());
            }
            tally.classes[class].add(one);
            let member: &Option<_> =
                member.get_or_insert_with(|| OwnerField::find(recording, &event, stream.trace_index()));
            let whose = member.as_ref().map_or(Actor::Unknown, |member| member.of(&event));
            if whose != actor {
                tally.actors.entry(actor).or_default().add(std::mem::take(&mut run));
                actor = whose;
            }
            run.add(one);
            last = event.clock_value();
            first = first.or(last);
        };
        let result = tally.read(&mut events, range, &mut count);
        if let Err(error) = result {
            (tally.error, tally.lost) = (Some(error), tally.lost.and(Losses::unknown()));
        }
        tally.actors.entry(actor).or_default().add(run);
        let time = |cycles: Option<Cycles>| events.time(cycles?);
        tally.range = time(first).zip(time(last));
        tally
    }

    fn read(
        &mut self,
        events: &mut StreamEvents,
        range: TimeRange,
        count: &mut impl FnMut(Event<'_>, &mut Tally),
    ) -> Result<(), Error> {
        if range != TimeRange::ALL {
            return events.for_each_in(range, |event, lost| match (event, lost) {
                (Some(event), _) => count(event, self),
                (None, lost) => lost.iter().for_each(|lost| self.lost.note(lost)),
            });
        }
        while events.enter_packet(|lost| self.lost.note(&lost))? {
            events.for_each_in_packet(|event| count(event, self))?;
        }
        Ok(())
    }

    fn note_owner(&mut self, event: &Event<'_>) {
        let number = |scope, name| event.field(scope, name).as_ref().and_then(integer);
        if let (Some(thread), Some(process)) =
            (number(Scope::CommonContext, context::TID[0]), number(Scope::Payload, context::PROCESS[0]))
        {
            self.owners.insert(thread, process);
        }
    }
}

/// The member of the common context that identifies the thread or process of an event.
struct OwnerField {
    member: MemberHandle,
    is_process: bool,
}

impl OwnerField {
    fn find(recording: &Recording, event: &Event<'_>, trace: usize) -> Option<Self> {
        let stream = recording.traces()[trace].class().data_stream_classes.iter();
        let stream = stream.take_while(|class| class.id != event.data_stream_class().id).count();
        let decoder = recording.traces()[trace].decoder();
        let ([tid, vtid], [pid, vpid]) = (context::TID, context::PROCESS);
        let names = [(vpid, true), (pid, true), (vtid, false), (tid, false)];
        names.into_iter().find_map(|(name, is_process)| {
            let member = decoder.member(stream, event.class_index(), Scope::CommonContext, name)?;
            Some(OwnerField { member, is_process })
        })
    }

    #[inline]
    fn of(&self, event: &Event<'_>) -> Actor {
        match event.member(self.member).as_ref().and_then(integer) {
            Some(id) if self.is_process => Actor::Process(id),
            Some(id) => Actor::Thread(id),
            None => Actor::Unknown,
        }
    }
}

#[inline]
fn integer(value: &Value<'_>) -> Option<i64> {
    match value {
        Value::Signed(value, _) => Some(*value),
        Value::Unsigned(value, _) => i64::try_from(*value).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::tests::refused;

    #[test]
    fn one_thread_counts_where_the_system_refuses_others() {
        let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../ctf/tests/data/lttng-ust-kinds");
        let recording = Recording::open(&[trace]).unwrap();
        assert!(recording.streams().len() > 1);
        let counted = |new| Statistics::collect_with(&recording, &Filter::default(), new).unwrap();
        let alone = counted(refused);
        assert!(alone.total.events > 0);
        assert_eq!(format!("{alone:?}"), format!("{:?}", counted(Builder::new)));
    }
}
