//! Reads a recording once, for one analysis: merged events, the super-trace's state, and of both what a filter lets through.

use crate::filtered::Filtered;
use crate::names::Names;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use tracewing_trace::super_trace::{
    Adapter, Doing, Fold, Follower, Lwp, Name, Scope, Seen, UserThread, Waker,
};
use tracewing_trace::{
    Error, EventRef, Filter, Lost, LostKind, Merge, Message, Progress, Recording, Selection, Stream,
    TimeRange, Trace,
};

/// Messages between two looks at how far it is.
const PERIOD: u64 = 1 << 16;

/// An analysis of the super-trace: of events, and of what LWPs and user threads did ([`Fold`]).
///
/// Of each event it is first told that it is there ([`Analysis::event`]), then what has come to an end by it ([`Fold`]).
pub trait Analysis: Fold {
    /// Whether it is to be told of events, whose places need not be found otherwise.
    const EVENTS: bool = true;

    /// Whether it is also told, before [`Analysis::begins`], of events that lie before, of who ends there, and of what is missing:
    /// where it has a state of its own that comes from them.
    const BEFORE: bool = false;

    /// Whether it makes something of what it is told at once, not at the end of whom it is about: then it is told nothing of
    /// those of whom no event tells yet whether they are wanted.
    const AT_ONCE: bool = false;

    /// What is analysed begins: with the first event, or at the time that the user asked for. Nothing has been told before,
    /// but names, and what [`Analysis::BEFORE`] says.
    fn begins(&mut self, _time: i64) {}

    /// The recording says that it follows some LWPs only: told before all else.
    fn is_of_some(&mut self) {}

    /// What a name is called that will be told from now on.
    fn name(&mut self, _name: Name, _text: &str) {}

    /// Whether it wants no more, as when its output cannot be written. It is asked now and then.
    fn is_done(&self) -> bool {
        false
    }

    /// An event whoever it is of, and whether or not the filter lets it through, from the recording's begin on: for those that
    /// explain others.
    fn explained(&mut self, _event: &EventRef<'_>) {}

    /// An event that the filter lets through.
    fn event(&mut self, _seen: &Seen<'_>) {}

    /// A state dump names a living thread, or one that has ended since.
    fn dumped(&mut self, _tid: i32, _process: i32, _name: &[u8]) {}

    /// An LWP that the filter leaves out did one thing for a time.
    fn other(&mut self, _lwp: &Lwp, _doing: Doing, _from: i64, _to: i64) {}

    /// An LWP that the filter leaves out was woken.
    fn other_woken(&mut self, _lwp: &Lwp, _by: &Waker, _at: i64) {}

    /// An LWP that the filter leaves out has ended, or the recording has.
    fn other_ends(&mut self, _lwp: &Lwp) {}

    /// Events are missing.
    fn lost(&mut self, _lost: &Loss) {}
}

/// Events that are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loss {
    /// Whose.
    pub scope: Scope,
    /// The CPU in whose buffer they had no room, where the stream says.
    pub cpu: Option<u32>,
    /// After this time, in nanoseconds on the recording's clock.
    pub from: i64,
    /// Before this time.
    pub to: i64,
    /// How many; `None` where nobody knows, as of whole packets.
    pub events: Option<u64>,
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
    /// Whether the recording follows some LWPs only ([`Lwp::followed`]).
    pub partial: bool,
    /// Whether it has everybody's kernel events: it says so, or comes from another tracer and nothing shows otherwise.
    pub whole: bool,
    /// Events that are known to be missing.
    pub lost_events: u64,
    /// Places where others are missing, nobody knows how many.
    pub lost_parts: u64,
    /// CPUs whose kernel events were recorded, by the recording's streams.
    pub cpus: u64,
    /// Whether the recording has no switches of threads, so that nobody knows when they ran.
    pub switchless: bool,
    /// CPUs whose kernel told of no switch from their idle threads, in a recording of the whole machine: since when others ran
    /// there is not known.
    pub idle_untold: Vec<u32>,
    /// Whether the filter left somebody out, or some of their time.
    pub chosen: bool,
    /// All names.
    pub names: Names,
    /// Samples that were lost in what was analysed.
    pub lost_samples: u64,
    /// Whether `watch` has ended it.
    pub stopped: bool,
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
    let follower = Follower::of(recording);
    if follower.is_of_some() {
        analysis.is_of_some();
    }
    let mut run = Run {
        range: filter.range(recording)?,
        selection: Selection::new(filter, recording)?,
        follower,
        filtered: Filtered::new(filter, analysis),
        before: false,
        lost_before: Vec::new(),
        begun: false,
        ran: Ran { cpus: kernel_cpus(recording), ..Ran::default() },
    };
    // Whether the recording goes on behind the range's end, the first event there tells.
    let mut merge = Merge::new(recording, TimeRange::ALL);
    let total = recording.bytes();
    for count in 1_u64.. {
        if count % PERIOD == 0 {
            if run.filtered.is_done() {
                break;
            }
            if watch(Progress { done: merge.bytes(), total }).is_break() {
                run.ran.stopped = true;
                break;
            }
        }
        let goes_on = match merge.advance() {
            Ok(Some(Message::Event(ref event))) => run.event(event),
            Ok(Some(Message::Lost(lost, trace, stream))) => {
                run.lost(lost, trace, stream);
                true
            }
            Ok(None) => {
                run.ends(recording);
                false
            }
            Err(error) => {
                run.ran.failure = Some(error);
                false
            }
        };
        if !goes_on {
            break;
        }
    }
    Ok(run.finish())
}

/// How many CPUs the kernel's streams are of.
fn kernel_cpus(recording: &Recording) -> u64 {
    let traces = recording.traces();
    let streams =
        recording.streams().iter().map(|stream| Adapter::scope(&traces[stream.trace_index()], stream));
    let cpus = streams.filter_map(|scope| match scope {
        Scope::Kernel(cpu) => cpu,
        Scope::User | Scope::Samples => None,
    });
    cpus.collect::<BTreeSet<u32>>().len() as u64
}

/// Tells only who ends.
struct Ends<'a, F>(&'a mut F);

impl<F: Fold> Fold for Ends<'_, F> {
    fn lwp_ends(&mut self, lwp: &Lwp) {
        self.0.lwp_ends(lwp);
    }

    fn user_thread_ends(&mut self, thread: &UserThread) {
        self.0.user_thread_ends(thread);
    }
}

/// What is read so far.
struct Run<'a, A> {
    range: TimeRange,
    selection: Selection,
    follower: Follower,
    filtered: Filtered<'a, A>,
    /// Whether something lies before the range.
    before: bool,
    /// What was lost then, but may have been in the range.
    lost_before: Vec<Loss>,
    /// Whether the range has begun.
    begun: bool,
    ran: Ran,
}

impl<A: Analysis> Run<'_, A> {
    /// Takes the next event; false if it lies behind the range.
    #[inline]
    fn event(&mut self, event: &EventRef<'_>) -> bool {
        self.ran.events += 1;
        let activity = self.follower.activity(event);
        self.learn_names();
        self.filtered.explained(event);
        if let Some(time) = activity.as_ref().map(|activity| activity.time) {
            if time > self.range.end {
                self.ran.end_ns = self.range.end;
                return false;
            }
            match self.begun {
                false if time >= self.range.begin => self.begin(time),
                false => self.before = true,
                true => {}
            }
            self.ran.end_ns = self.ran.end_ns.max(time);
        }
        if A::EVENTS && (self.begun || A::BEFORE) {
            let seen = self.follower.seen(event, activity.as_ref());
            if self.selection.wants_seen(&seen) {
                self.filtered.event(&seen);
            }
        }
        if let Some(activity) = &activity {
            match self.begun {
                true => self.follower.event(activity, &mut self.filtered),
                false if A::BEFORE => self.follower.event(activity, &mut Ends(&mut self.filtered)),
                false => self.follower.event(activity, &mut ()),
            }
            self.filtered.follow(activity, self.follower.state());
        }
        true
    }

    /// There are no more events: nothing else has happened until the recording ended.
    fn ends(&mut self, recording: &Recording) {
        let end = recording.end().unwrap_or(i64::MIN).min(self.range.end);
        self.ran.end_ns = self.ran.end_ns.max(end);
    }

    fn learn_names(&mut self) {
        let names = self.follower.adapter().names();
        for (number, text) in names.iter().enumerate().skip(self.filtered.known_names()) {
            self.filtered.name(Name(number as u32), text);
        }
    }

    /// The range begins, or with `time` the recording does: what lies before that is no time of it.
    #[cold]
    fn begin(&mut self, time: i64) {
        let begin = if self.before { self.range.begin } else { time };
        self.begun = true;
        (self.ran.begin_ns, self.ran.end_ns) = (begin, begin);
        self.follower.restart(begin);
        self.filtered.begins(begin);
        let (lost, before) = (std::mem::take(&mut self.lost_before), self.before);
        for loss in lost.into_iter().filter(|loss| loss.to >= begin) {
            // How many of them are in the range nobody knows.
            let events = loss.events.filter(|_| !before || loss.from >= begin);
            self.misses(&Loss { from: loss.from.max(begin), events, ..loss }, !A::BEFORE);
        }
    }

    /// Counts what was lost in the range, and tells of it if `tells`.
    fn misses(&mut self, loss: &Loss, tells: bool) {
        match (loss.scope, loss.events) {
            (Scope::Samples, events) => self.ran.lost_samples += events.unwrap_or(0),
            (_, Some(events)) => self.ran.lost_events += events,
            (_, None) => self.ran.lost_parts += 1,
        }
        if tells {
            self.filtered.lost(loss);
        }
    }

    fn lost(&mut self, lost: &Lost, trace: &Trace, stream: &Stream) {
        let (from, to) = lost.range.unwrap_or((i64::MIN, i64::MAX));
        if from > self.range.end {
            return;
        }
        let (scope, cpu) = (Adapter::scope(trace, stream), Adapter::stream_cpu(stream));
        let is_counted = lost.kind == LostKind::Events || scope == Scope::Samples;
        let loss = Loss { scope, cpu, from, to, events: lost.count.filter(|_| is_counted) };
        match self.begun {
            true => {
                let (from, to) = (from.max(self.ran.begin_ns), to.min(self.range.end));
                self.misses(&Loss { from, to, ..loss }, true);
                self.follower.lost(lost, trace, stream, &mut self.filtered);
            }
            false => {
                if A::BEFORE {
                    self.filtered.lost(&loss);
                }
                if to >= self.range.begin {
                    self.lost_before.push(loss);
                }
                self.follower.lost(lost, trace, stream, &mut ());
            }
        }
    }

    fn finish(mut self) -> Ran {
        self.ran.chosen = self.filtered.leaves_out();
        let state = self.follower.state();
        self.ran.switchless = state.is_switchless();
        if self.follower.is_system_wide() {
            self.ran.idle_untold = state.idle_untold();
        }
        self.ran.whole = self.follower.is_whole();
        self.ran.partial = self.follower.has_strangers();
        match self.begun {
            true => self.follower.finish(self.ran.end_ns, &mut self.filtered),
            false => self.ran.end_ns = 0,
        }
        self.ran.names = self.filtered.into_names();
        self.ran
    }
}
