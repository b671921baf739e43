//! Reads a recording once, for one analysis: merged events, the super-trace's state, and of both what a
//! filter lets through.

use crate::analysis::{Analysis, Input, Loss};
use crate::filtered::Filtered;
use crate::names::Names;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use tracewing_trace::super_trace::{
    Adapter, AllUnseen, Change, Coverage, Fold, Follower, Interrupts, Name, Scope, Unseen,
};
use tracewing_trace::{
    Error, EventRef, Filter, Lost, LostKind, Merge, Message, Progress, Recording, Selection, Stream,
    TimeRange, Trace,
};
use tracewing_units::{Cpu, Duration, Timestamp};
use tracewing_vocabulary::function::{Entry, Exit};
use tracewing_vocabulary::kernel::{self, SystemCall};
use tracewing_vocabulary::{lock, profile, user_thread};

/// Messages between two looks at how far it is.
const PERIOD: u64 = 1 << 16;

/// Which kinds of the kernel's events a recording contains completely: it has their classes, and is not an
/// extract without some of them. Counts of other kinds are unknown, not 0.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Recorded {
    /// Switches of threads.
    pub switches: bool,
    /// Wakes of threads.
    pub wakes: bool,
    /// Those by which new threads begin as well.
    pub first_wakes: bool,
    /// Begins of system calls.
    pub system_calls: bool,
    /// Begins of all of them, not only of certain ones.
    pub all_system_calls: bool,
    /// Page faults, those of programs and those of the kernel.
    pub page_faults: bool,
    /// Interrupts, of every kind.
    pub interrupts: bool,
    /// Not all switches of its user threads.
    pub lacks_user_switches: bool,
    /// Not all of their wakes.
    pub lacks_user_wakes: bool,
    /// Some effects of polls are not recorded.
    pub lacks_effects: bool,
    /// Not all ends of functions whose begins it has.
    pub lacks_ends_of_functions: bool,
    /// Not all functions that were recorded are in it, or in what is analysed: time in those that are left
    /// may be of others.
    pub lacks_functions: bool,
    /// What it lacks of the locks of threads, and of those of user threads.
    pub lacks_of_locks: [LocksLack; 2],
    /// It has samples, and not all mappings of files.
    pub lacks_mappings: bool,
    /// It has samples, and not all events that say which programs processes execute.
    pub lacks_programs: bool,
}

/// Which of the events about locks a recording does not have, though it has others.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct LocksLack {
    /// Not all requests, or not all of the unsuccessful ones.
    pub requests: bool,
    /// Not all acquisitions.
    pub acquisitions: bool,
    /// Not all releases.
    pub releases: bool,
}

impl LocksLack {
    /// `uncommon` events have no class where programs do without them: of refused requests, and of releases
    /// of other kinds.
    fn of(
        [request, acquired, released]: [&str; 3],
        uncommon: [&[&str]; 2],
        names: &BTreeSet<&str>,
        left_out: &BTreeSet<&str>,
        excluded: &BTreeSet<&str>,
    ) -> Self {
        if [request, acquired, released].iter().all(|name| !names.contains(name)) {
            return Self::default();
        }
        let is_missing = |name| !names.contains(name) || left_out.contains(name);
        let [refusals, releases] =
            uncommon.map(|all| all.iter().any(|name| left_out.contains(name) || excluded.contains(name)));
        Self {
            requests: is_missing(request) || refusals,
            acquisitions: is_missing(acquired),
            releases: is_missing(released) || releases,
        }
    }
}

/// What says which program a process executes: it begins with its parent's, and maps each one's file first.
const PROGRAM: [&str; 3] = [profile::Mapping::NAME, profile::Thread::NAME, profile::Fork::NAME];

impl Recorded {
    pub(crate) fn of(recording: &Recording) -> Self {
        let classes = recording.traces().iter().flat_map(|trace| &trace.class().data_stream_classes);
        let classes = classes.flat_map(|stream| &stream.event_record_classes);
        let names: BTreeSet<&str> = classes.filter_map(|class| class.name.as_deref()).collect();
        let (left_out, excluded) = (recording.left_out(), recording.excluded());
        let mut this = Self::default();
        let mut faults = [false; 2];
        // A recording without any event of a kind is not about it; one with some, but not all, lacks the
        // rest.
        let has_user_threads = names.iter().any(|name| name.starts_with(user_thread::START));
        this.lacks_user_switches = has_user_threads && !names.contains(user_thread::Switch::NAME);
        this.lacks_user_wakes = has_user_threads && !names.contains(user_thread::Wake::NAME);
        let has_samples = names.contains(profile::Sample::NAME);
        this.lacks_mappings = has_samples && !names.contains(profile::Mapping::NAME);
        this.lacks_programs = has_samples && PROGRAM.iter().any(|name| !names.contains(name));
        let begun = names.iter().filter_map(|name| name.strip_prefix(Entry::NAME));
        this.lacks_ends_of_functions =
            begun.into_iter().any(|function| !names.contains(format!("{}{function}", Exit::NAME).as_str()));
        for name in &names {
            this.switches |= *name == kernel::Switch::NAME;
            this.wakes |= is_wake(name) && *name != kernel::WakeupNew::NAME;
            this.first_wakes |= *name == kernel::WakeupNew::NAME;
            this.system_calls |= is_call(name);
            faults[0] |= *name == kernel::PageFaultUser::NAME;
            faults[1] |= *name == kernel::PageFaultKernel::NAME;
        }
        // With one kind alone, the count would be too small.
        this.page_faults = faults == [true; 2];
        let names = names.iter().chain(&left_out).copied().collect();
        this.lacks_of_locks = lacks_of_locks(&names, &left_out, &excluded);
        this.all_system_calls = Coverage::of(recording).system_call_entries;
        // An extract may still have the class of events that were left out, or some of its events.
        for name in left_out {
            this.lacks_user_switches |= name == user_thread::Switch::NAME;
            this.lacks_user_wakes |= name == user_thread::Wake::NAME;
            this.lacks_effects |= name.starts_with(user_thread::START);
            this.lacks_ends_of_functions |= name.starts_with(Exit::NAME);
            this.lacks_functions |= name.starts_with(Entry::NAME);
            this.lacks_mappings |= name == profile::Mapping::NAME;
            this.lacks_programs |= PROGRAM.contains(&name);
            this.switches &= name != kernel::Switch::NAME;
            this.wakes &= !is_wake(name);
            this.system_calls &= !is_call(name);
            this.all_system_calls &= !is_call(name);
            this.page_faults &= ![kernel::PageFaultUser::NAME, kernel::PageFaultKernel::NAME].contains(&name);
        }
        this
    }
}

/// What events of threads' locks, and of user threads', are not recorded. `names` are those of all classes
/// that a recording has, and those that were left out.
fn lacks_of_locks(
    names: &BTreeSet<&str>,
    left_out: &BTreeSet<&str>,
    excluded: &BTreeSet<&str>,
) -> [LocksLack; 2] {
    let released_otherwise = [lock::NotReleased::NAME, lock::ConditionWait::NAME, lock::ConditionWoken::NAME];
    [
        LocksLack::of(
            [lock::Requested::NAME, lock::Acquired::NAME, lock::Released::NAME],
            [&[lock::Refused::NAME], &released_otherwise],
            names,
            left_out,
            excluded,
        ),
        LocksLack::of(
            [user_thread::Wait::NAME, user_thread::Acquired::NAME, user_thread::Released::NAME],
            [&[user_thread::GivenUp::NAME], &[]],
            names,
            left_out,
            excluded,
        ),
    ]
}

impl Recorded {
    /// What is left of it where a filter leaves out events of these names: state comes from them all the
    /// same.
    pub(crate) fn chosen(mut self, left_out: &BTreeSet<String>) -> Self {
        let mut ends = left_out.iter().filter_map(|name| name.strip_prefix(Exit::NAME));
        self.lacks_ends_of_functions |=
            ends.any(|function| !left_out.contains(&format!("{}{function}", Entry::NAME)));
        self.lacks_functions |= left_out.iter().any(|name| name.starts_with(Entry::NAME));
        self
    }
}

/// Whether events of this name are of threads that are woken.
fn is_wake(name: &str) -> bool {
    use kernel::Class::{Wakeup, WakeupNew, Waking};
    matches!(kernel::Class::of_name(name), Some(Waking | Wakeup | WakeupNew))
}

/// Whether events of this name are of system calls that begin.
fn is_call(name: &str) -> bool {
    matches!(SystemCall::of_name(name), Some(SystemCall::Entry(_)))
}

/// What is known at the end.
#[derive(Debug, Default)]
pub struct Ran {
    /// Beginning and end of the analysed range, nanoseconds on the recording's clock; 0 if there was no
    /// event.
    pub begin_ns: Timestamp,
    /// The end, like `begin_ns`.
    pub end_ns: Timestamp,
    /// Events read, those before the beginning included.
    pub events: u64,
    /// Whether the recording follows some LWPs only ([`Lwp::followed`]).
    pub partial: bool,
    /// Whether it has all threads' kernel events: it declares so, or comes from another tracer and nothing
    /// contradicts it.
    pub whole: bool,
    /// Events that are known to be missing.
    pub lost_events: u64,
    /// Number of losses of unknown size.
    pub lost_parts: u64,
    /// The beginning of the last buffer whose first part was overwritten, if it lies in the analysed range:
    /// until then some events are missing.
    pub incomplete_until: Option<Timestamp>,
    /// CPUs whose kernel events were recorded, by the recording's streams.
    pub cpus: u64,
    /// Which kinds of the kernel's events it has.
    pub recorded: Recorded,
    /// Whether the recording has no switches of threads, so that it is unknown when they ran.
    pub switchless: bool,
    /// Whether it lacks some system calls, so that the mode of running threads is unknown.
    pub modeless: bool,
    /// CPUs whose kernel reported no switch from their idle threads, in a recording of the whole machine: it
    /// is unknown from when on other threads ran there.
    pub idle_unreported: Vec<Cpu>,
    /// Threads of whose system calls no event shows that the kernel records them, as it does not of 32-bit
    /// programs ([`Lwp::lacks_calls`]): it is not known whether they were in one.
    pub without_calls: u64,
    /// Whether the filter left out any thread, or a part of the time.
    pub chosen: bool,
    /// Whether only what happened on some CPUs was analysed: a thread may have begun or ended anything on
    /// another one.
    pub some_cpus: bool,
    /// Whether only what happened on some LWPs was analysed: a user thread may have begun or ended anything
    /// on another one.
    pub some_tids: bool,
    /// Whether the filter may leave out some of the events that belong together ([`Analysis::TOGETHER`]).
    pub torn: bool,
    /// The text of each [`Name`](tracewing_trace::super_trace::Name) in the results.
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
    pub fn duration_ns(&self) -> Duration {
        self.end_ns - self.begin_ns
    }
}

/// Runs `analysis` on the part of a recording that `filter` lets through. Data before its beginning are read
/// for the state but not reported; times are clipped there, and counters are 0. `watch` is called with the
/// progress from time to time, and may stop it: the result then covers what was read.
///
/// # Errors
/// [`Error::Usage`] if the filter does not fit the recording. Unreadable data are not an error:
/// [`Ran::failure`] reports them.
pub fn run<A: Analysis>(
    recording: &Recording,
    filter: &Filter,
    analysis: &mut A,
    watch: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Ran, Error> {
    let mut run = Run::new(recording, filter, analysis)?;
    // The first event after the range's end shows whether the recording continues there.
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
    cpus.collect::<BTreeSet<Cpu>>().len() as u64
}

/// Passes on only what ends.
struct Ends<'a, F>(&'a mut F);

impl<F: Fold> Fold for Ends<'_, F> {
    fn change(&mut self, change: Change<'_>) {
        if let Change::LwpEnds { .. } | Change::UserThreadEnds { .. } = change {
            self.0.change(change);
        }
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
    unseen: AllUnseen,
    /// Until then, events of programs are missing.
    blind_until: Option<Timestamp>,
    /// Whether the range has begun.
    begun: bool,
    ran: Ran,
}

impl<'a, A: Analysis> Run<'a, A> {
    fn new(recording: &Recording, filter: &'a Filter, analysis: &'a mut A) -> Result<Self, Error> {
        let follower = Follower::of(recording);
        if follower.state().coverage().of_some {
            analysis.input(Input::FollowsSome);
        }
        Ok(Self {
            range: filter.range(recording)?,
            selection: Selection::new(filter, recording)?,
            follower,
            filtered: Filtered::new(filter, analysis),
            before: false,
            lost_before: Vec::new(),
            unseen: AllUnseen::of(recording),
            blind_until: None,
            begun: false,
            ran: Ran {
                cpus: kernel_cpus(recording),
                recorded: Recorded::of(recording).chosen(&filter.leaves_out(recording)),
                some_cpus: filter.chooses_cpus() || recording.is_extract_of_cpus(),
                some_tids: filter.chooses_tids() || recording.is_extract_of_lwps(),
                torn: filter.tears(recording, A::TOGETHER, A::SAME),
                ..Ran::default()
            },
        })
    }

    /// Handles the next event; false if it lies after the range.
    #[inline]
    fn event(&mut self, event: &EventRef<'_>) -> bool {
        self.ran.events += 1;
        let activity = self.follower.activity(event);
        self.learn_names();
        self.filtered.input(Input::Explained(event));
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
            self.sees_again_by(time);
            while (self.begun || A::BEFORE)
                && let Some(unseen) = self.unseen.by(time)
            {
                self.does_not_see(&unseen);
            }
        }
        if A::EVENTS && (self.begun || A::BEFORE) {
            let seen = self.follower.seen(event, activity.as_ref());
            if self.selection.selects_seen(&seen) {
                self.filtered.input(Input::Event(&seen));
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
        let end = recording.end().unwrap_or(Timestamp::MIN).min(self.range.end);
        self.ran.end_ns = self.ran.end_ns.max(end);
    }

    fn learn_names(&mut self) {
        let names = self.follower.adapter().names();
        for (number, text) in names.iter().enumerate().skip(self.filtered.known_names()) {
            self.filtered.input(Input::Name { name: Name(number as u32), text });
        }
    }

    /// The range begins, or with `time` the recording does: time before that does not belong to it.
    #[cold]
    fn begin(&mut self, time: Timestamp) {
        let begin = if self.before { self.range.begin } else { time };
        self.begun = true;
        (self.ran.begin_ns, self.ran.end_ns) = (begin, begin);
        self.follower.restart(begin);
        self.filtered.input(Input::Begins { time: begin });
        let (lost, before) = (std::mem::take(&mut self.lost_before), self.before);
        for loss in lost.into_iter().filter(|loss| loss.to >= begin) {
            // It is unknown how many of them are in the range.
            let events = loss.events.filter(|_| !before || loss.from >= begin);
            self.misses(&Loss { from: loss.from.max(begin), events, ..loss }, !A::BEFORE);
        }
    }

    /// Counts a loss in the range, and reports it if `is_reported`.
    fn misses(&mut self, loss: &Loss, is_reported: bool) {
        match (loss.scope, loss.events) {
            (Scope::Samples, events) => {
                self.ran.lost_samples = self.ran.lost_samples.saturating_add(events.unwrap_or(0));
            }
            (_, Some(events)) => self.ran.lost_events = self.ran.lost_events.saturating_add(events),
            (_, None) => self.ran.lost_parts += 1,
        }
        if is_reported {
            self.filtered.input(Input::Lost(loss));
        }
    }

    /// What happens in a buffer that begins later is not seen yet.
    fn does_not_see(&mut self, unseen: &Unseen) {
        let &Unseen { scope, cpu, from, to } = unseen;
        let to = to.min(self.range.end);
        if to >= self.range.begin && scope != Scope::Samples {
            self.ran.incomplete_until = self.ran.incomplete_until.max(Some(to));
        }
        self.stay_blind_until(scope, to);
        let from = if self.begun { from.max(self.ran.begin_ns) } else { from };
        if from <= to {
            self.filtered.input(Input::Lost(&Loss {
                scope,
                cpu,
                from,
                to,
                events: None,
                is_of_others: false,
            }));
        }
    }

    fn stay_blind_until(&mut self, scope: Scope, to: Timestamp) {
        if scope == Scope::User {
            self.blind_until = self.blind_until.max(Some(to));
        }
    }

    #[inline]
    fn sees_again_by(&mut self, time: Timestamp) {
        if let Some(until) = self.blind_until.take_if(|until| *until <= time)
            && (self.begun || A::BEFORE)
        {
            self.filtered.input(Input::LossOver { time: until });
        }
    }

    fn lost(&mut self, lost: &Lost, trace: &Trace, stream: &Stream) {
        let (from, to) = lost.range.unwrap_or((Timestamp::MIN, Timestamp::MAX));
        if from > self.range.end {
            return;
        }
        let (scope, cpu) = (Adapter::scope(trace, stream), Adapter::stream_cpu(stream));
        self.stay_blind_until(scope, to);
        let is_counted = lost.kind == LostKind::Events || scope == Scope::Samples;
        let is_of_others = lost.kind == LostKind::Events && stream.loses_of_others();
        let loss = Loss { scope, cpu, from, to, events: lost.count.filter(|_| is_counted), is_of_others };
        match self.begun {
            true => {
                let (from, to) = (from.max(self.ran.begin_ns), to.min(self.range.end));
                self.misses(&Loss { from, to, ..loss }, true);
                self.follower.lost(lost, trace, stream, &mut self.filtered);
            }
            false => {
                if A::BEFORE {
                    self.filtered.input(Input::Lost(&loss));
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
        let coverage = state.coverage();
        self.ran.switchless = !coverage.switches;
        self.ran.recorded.interrupts = coverage.interrupts != Interrupts::Unrecorded;
        self.ran.recorded.switches &= !self.ran.switchless;
        self.ran.modeless = !coverage.system_calls;
        if coverage.system_wide {
            self.ran.idle_unreported = state.idle_unreported();
        }
        self.ran.without_calls = if self.ran.modeless { 0 } else { state.without_calls() };
        self.ran.whole = self.follower.is_whole();
        self.ran.partial = self.follower.has_strangers();
        match self.begun {
            true => self.follower.finish(self.ran.end_ns, &mut self.filtered),
            false => {
                self.ran.end_ns = Timestamp::ORIGIN;
                std::mem::take(&mut self.lost_before).iter().for_each(|loss| self.misses(loss, false));
            }
        }
        self.ran.names = self.filtered.into_names();
        self.ran
    }
}
