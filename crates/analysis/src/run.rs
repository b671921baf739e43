//! Reads a recording once, for one analysis: merged events, the super-trace's state, and of both what a filter lets through.

use crate::names::Names;
use crate::subjects::Subjects;
use std::ops::ControlFlow;
use tracewing_trace::super_trace::{Activity, Adapter, Carried, Fold, Mode, Name, Place, Scope, SuperTrace};
use tracewing_trace::{Error, EventRef, Filter, Merge, Message, Progress, Recording, TimeRange};

/// Messages between two looks at how far it is.
const PERIOD: u64 = 1 << 16;

/// One event that the filter lets through, with its place.
#[derive(Debug)]
pub struct Seen<'a> {
    /// The event.
    pub event: &'a EventRef<'a>,
    /// What it means for the super-trace; `None` where it has no time, or not the fields that its name promises.
    pub activity: Option<&'a Activity<'a>>,
    /// Where it belongs: the state before it, so a switch belongs to what it switches from.
    pub place: Place<'a>,
    /// The state before it.
    pub state: &'a SuperTrace,
}

/// An analysis of the super-trace: of events, and of what LWPs and user threads did ([`Fold`]).
///
/// Of each event it is first told that it is there ([`Analysis::event`]), then what has come to an end by it ([`Fold`]).
pub trait Analysis: Fold {
    /// What is analysed begins: with the first event, or at the time that the user asked for. Nothing has been told before,
    /// but names.
    fn begins(&mut self, _time: i64) {}

    /// What a name is called that will be told from now on.
    fn name(&mut self, _name: Name, _text: &str) {}

    /// Whether it wants no more, as when its output cannot be written. It is asked now and then.
    fn is_done(&self) -> bool {
        false
    }

    /// An event that the filter lets through.
    fn event(&mut self, _seen: &Seen<'_>) {}

    /// A state dump names a living thread, or one that has ended since.
    fn dumped(&mut self, _tid: i32, _process: i32, _name: &[u8]) {}

    /// Events between two times are missing.
    fn lost(&mut self, _scope: Scope, _from: i64, _to: i64) {}
}

/// What is known at the end.
#[derive(Debug, Default)]
pub struct Ran {
    /// When what was analysed began and ended, nanoseconds on the recording's clock; 0 where there was no event.
    pub begin_ns: i64,
    /// See [`Ran::begin_ns`].
    pub end_ns: i64,
    /// Events read, those before the begin included.
    pub events: u64,
    /// Whether the recording follows some LWPs only ([`SuperTrace::is_partial`]).
    pub partial: bool,
    /// All names.
    pub names: Names,
    /// Why it ended before the recording did: the result is of what was read.
    pub failure: Option<Error>,
}

impl Ran {
    /// How long what was analysed lasted, in nanoseconds.
    pub fn duration_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.begin_ns).unsigned_abs()
    }
}

/// Tells `analysis` what `filter` lets through of a recording. What lies before its begin is read for the state and told
/// nobody; times are clipped there and counters are 0. `watch` is told from time to time how far it is, and may end it: the
/// result is then of what was read.
///
/// # Errors
/// [`Error::Usage`] where the filter makes no sense for the recording. What cannot be read is no error: it is in
/// [`Ran::failure`].
pub fn run<A: Analysis>(
    recording: &Recording,
    filter: &Filter,
    analysis: &mut A,
    watch: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Ran, Error> {
    let range = filter.range(recording)?;
    let mut selection = filter.selection(recording)?;
    let mut merge = Merge::new(recording, TimeRange::ALL);
    let mut adapter = Adapter::new();
    let mut state = SuperTrace::new();
    let mut subjects = Subjects::new(filter, analysis);
    let mut ran = Ran::default();
    let (mut begun, mut messages) = (false, 0);
    let mut last = i64::MIN;
    loop {
        messages += 1;
        if messages % PERIOD == 0
            && (subjects.is_done() || watch(Progress { done: messages, total: 0 }).is_break())
        {
            break;
        }
        let message = match merge.advance() {
            Ok(Some(message)) => message,
            Ok(None) => break,
            Err(error) => {
                ran.failure = Some(error);
                break;
            }
        };
        match message {
            Message::Event(event) => {
                ran.events += 1;
                let activity = adapter.activity(&event);
                let known = ran.names.len();
                for (number, text) in adapter.names().iter().enumerate().skip(known) {
                    let name = Name(number as u32);
                    ran.names.learn(name, text);
                    subjects.name(name, text);
                }
                if let Some(time) = activity.as_ref().map(|activity| activity.time) {
                    if time > range.end {
                        state.advance(range.end);
                        last = last.max(range.end);
                        break;
                    }
                    last = last.max(time);
                    if !begun && time >= range.begin {
                        begun = true;
                        ran.begin_ns = if range.begin == i64::MIN { time } else { range.begin };
                        state.restart(ran.begin_ns);
                        subjects.begins(ran.begin_ns);
                    }
                }
                if begun {
                    let place = match &activity {
                        Some(activity) => state.place(activity),
                        None => Place {
                            cpu: event.cpu().and_then(|cpu| u32::try_from(cpu).ok()),
                            process: None,
                            tid: None,
                            lwp: None,
                            thread: Carried::Unknown,
                            thread_serial: None,
                            mode: Mode::Unknown,
                        },
                    };
                    let seen = Seen { event: &event, activity: activity.as_ref(), place, state: &state };
                    if selection.wants(&event) {
                        subjects.event(&seen);
                    }
                }
                if let Some(activity) = &activity {
                    match begun {
                        true => state.event(activity, &mut subjects),
                        false => state.event(activity, &mut ()),
                    }
                    subjects.follow(activity, &state);
                }
            }
            Message::Lost(lost, trace, stream) => {
                let scope = Adapter::scope(trace, stream);
                let (from, to) = lost.range.unwrap_or((i64::MIN, i64::MAX));
                if from > range.end {
                    continue;
                }
                match begun {
                    true => {
                        subjects.lost(scope, from, to);
                        state.lost(scope, from, to, &mut subjects);
                    }
                    false => state.lost(scope, from, to, &mut ()),
                }
            }
        }
    }
    ran.partial = state.is_partial();
    if begun {
        ran.end_ns = last;
        state.finish(&mut subjects);
    }
    Ok(ran)
}
