//! Reads a recording once, for one analysis: merged events, the super-trace's state, and of both what a
//! filter lets through.

mod checkpoints;
mod cuts;
mod missing;
mod ongoing;
mod order;
mod ran;
mod recorded;
pub(crate) mod window;

pub use cuts::Cuts;
pub use ongoing::Ongoing;
pub use ran::{Lossy, Ran};
pub use recorded::{LocksLack, Recorded};

use crate::analysis::{Analysis, Input, Loss, ReadApart};
use crate::filtered::Filtered;
use checkpoints::{Keeper, loss_of};
use missing::Missing;
use order::Order;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::thread::available_parallelism;
use tracewing_trace::super_trace::{
    Activity, Adapter, Ahead, AllUnseen, Batches, Change, Decoded, Fold, Follower, Interrupts, Name, Pauses,
    Scope, Unseen,
};
use tracewing_trace::{
    Error, EventRef, Filter, Losses, Message, Progress, Recording, Selection, Stream, TimeRange, Trace,
};
use tracewing_units::{Cpu, Timestamp};

/// Messages between two looks at how far it is.
const PERIOD: u64 = 1 << 16;

/// From this size on, in bytes, threads share the work.
const SHARED: u64 = 4 << 20;

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
    run_as(recording, filter, analysis, is_worth_threads(recording), watch)
}

/// Whether a recording is so large that threads should share the work, and there are CPUs for them.
pub fn is_worth_threads(recording: &Recording) -> bool {
    recording.bytes() >= SHARED && available_parallelism().map_or(1, usize::from) > 1
}

/// The same; `ahead` says whether another thread decodes the events, if the analysis can do without them.
fn run_as<A: Analysis>(
    recording: &Recording,
    filter: &Filter,
    analysis: &mut A,
    ahead: bool,
    watch: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Ran, Error> {
    let mut run = Run::new(recording, filter, analysis)?;
    let begun = run.begins(recording);
    match ahead && !A::EVENTS && !A::EARLIER {
        true => {
            let read = |_: &EventRef<'_>| None::<()>;
            Batches::with(begun, read, |batches| match batches {
                Ok(batches) => run.read_batches(recording, batches, &mut |_, _, _| {}, watch),
                Err(begun) => run.read(recording, begun, watch),
            });
        }
        false => run.read(recording, begun, watch),
    }
    Ok(run.finish())
}

/// As [`run()`], of a whole recording, for an analysis whose events can be read by the thread that decodes
/// them; `ahead` says whether that is another thread ([`is_worth_threads`]). It gets a checkpoint at each of
/// `pauses` where another run can continue.
///
/// # Errors
/// As [`run()`].
pub fn run_apart<A: ReadApart>(
    recording: &Recording,
    analysis: &mut A,
    ahead: bool,
    pauses: Pauses,
    watch: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Ran, Error> {
    let filter = Filter::default();
    let mut run = Run::new(recording, &filter, analysis)?;
    run.keeps(&pauses);
    let begun = Ahead::all(recording, pauses);
    match ahead {
        true => {
            let mut reader = A::Reader::default();
            let read = move |event: &EventRef<'_>| A::read(&mut reader, event);
            Batches::with(begun, read, |batches| match batches {
                Ok(batches) => run.read_batches(recording, batches, &mut Run::located, watch),
                Err(begun) => run.read(recording, begun, watch),
            });
        }
        false => run.read(recording, begun, watch),
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
#[derive(Debug)]
struct Run<'a, A> {
    range: TimeRange,
    filter: &'a Filter,
    selection: Selection,
    follower: Follower,
    filtered: Filtered<'a, A>,
    /// Whether something lies before the range.
    before: bool,
    /// What was lost then, but may have been in the range.
    lost_before: Vec<Loss>,
    unseen: AllUnseen,
    order: Order,
    /// Until then, events of programs are missing.
    blind_until: Option<Timestamp>,
    /// Whether the range has begun.
    begun: bool,
    /// Whether other ranges come before and after this one, and a loss in several of them is counted in the
    /// first to which its packet comes.
    is_one_of_many: bool,
    /// Until then, events of programs are missing that were reported as lost.
    lost_until: Option<Timestamp>,
    /// What checkpoints need, if they are made.
    keeper: Option<Keeper>,
    /// Bytes of the recording that need not be read.
    left_out: u64,
    ran: Ran,
}

impl<'a, A: Analysis> Run<'a, A> {
    fn new(recording: &Recording, filter: &'a Filter, analysis: &'a mut A) -> Result<Self, Error> {
        Self::with(Follower::of(recording), recording, filter, analysis)
    }

    /// One that has the state of what was read before.
    fn with(
        follower: Follower,
        recording: &Recording,
        filter: &'a Filter,
        analysis: &'a mut A,
    ) -> Result<Self, Error> {
        if follower.state().coverage().of_some {
            analysis.input(Input::FollowsSome);
        }
        Ok(Self {
            range: filter.range(recording)?,
            filter,
            selection: Selection::new(filter, recording)?,
            follower,
            filtered: Filtered::new(filter, analysis),
            before: false,
            lost_before: Vec::new(),
            unseen: AllUnseen::of(recording),
            order: Order::default(),
            blind_until: None,
            begun: false,
            is_one_of_many: false,
            lost_until: None,
            keeper: None,
            left_out: 0,
            ran: Ran {
                cpus: kernel_cpus(recording),
                recorded: Recorded::of(recording).chosen(&filter.leaves_out(recording)),
                is_part: recording.is_extract(),
                is_part_of_time: recording.is_extract_of_time(),
                cuts: Cuts::of(filter),
                some_cpus: filter.chooses_cpus() || recording.is_extract_of_cpus(),
                some_tids: filter.chooses_tids() || recording.is_extract_of_lwps(),
                torn: filter.tears(recording, A::TOGETHER, A::SAME),
                ..Ran::default()
            },
        })
    }

    /// Whether the analysis, or the user, needs no more; called from time to time.
    fn is_over(&mut self, progress: Progress, watch: &mut dyn FnMut(Progress) -> ControlFlow<()>) -> bool {
        if self.filtered.is_done() {
            return true;
        }
        self.ran.stopped = watch(progress).is_break();
        self.ran.stopped
    }

    /// Reads a recording up to the range's end: the first event after that shows whether the recording
    /// continues there.
    fn read(
        &mut self,
        recording: &Recording,
        begun: Ahead<'_>,
        watch: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) {
        let Ahead { mut merge, adapter, mut pauses, .. } = begun;
        self.follower.take_over(adapter);
        let total = recording.bytes();
        loop {
            let (mut left, mut continues) = (PERIOD, true);
            let flow = merge.for_each(|message| {
                match message {
                    Message::Event(ref event) => {
                        pauses.event(event);
                        continues = self.event(event);
                    }
                    Message::Lost(lost, trace, stream) => {
                        self.keeps_loss(recording, lost, stream);
                        self.lost(&Missing::of(lost, trace, stream, &self.selection));
                    }
                }
                left -= 1;
                if continues && left > 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            });
            continues &= match flow {
                Ok(ControlFlow::Break(())) => true,
                Ok(ControlFlow::Continue(())) => {
                    match pauses.pass(recording, &mut merge, self.follower.adapter()) {
                        Some(pause) => self.pauses(recording, &pause),
                        None => self.ended(recording, Ok(())),
                    }
                }
                Err(error) => self.ended(recording, Err(error)),
            };
            let done = self.left_out + merge.bytes();
            if !continues || self.is_over(Progress { done, total }, watch) {
                break;
            }
        }
    }

    /// The same with events that another thread decodes; `read` takes what that has read of each, before the
    /// state advances.
    fn read_batches<R: Send>(
        &mut self,
        recording: &Recording,
        mut batches: Batches<R>,
        read: &mut impl FnMut(&mut Self, Option<&mut R>, Option<&Activity<'_>>),
        watch: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) {
        let total = recording.bytes();
        while let Some(mut batch) = batches.take() {
            for text in batch.names() {
                let name = Name(self.filtered.known_names() as u32);
                self.filtered.input(Input::Name { name, text });
            }
            let flow = batch.try_for_each(|message| match message {
                Decoded::Event { activity, time, stream, read: of } => {
                    let read = |run: &mut Self, activity: Option<&Activity<'_>>| read(run, of, activity);
                    match self.decoded(recording, activity.as_ref(), (time, stream), read) {
                        true => ControlFlow::Continue(()),
                        false => ControlFlow::Break(()),
                    }
                }
                Decoded::Lost(lost, stream) => {
                    let stream = &recording.streams()[stream];
                    let trace = &recording.traces()[stream.trace_index()];
                    self.keeps_loss(recording, &lost, stream);
                    self.lost(&Missing::of(&lost, trace, stream, &self.selection));
                    ControlFlow::Continue(())
                }
            });
            let continues = flow.is_continue()
                && batch.pause().is_none_or(|pause| self.pauses(recording, &pause))
                && batch.end().is_none_or(|end| self.ended(recording, end));
            let done = self.left_out + batch.bytes();
            if !continues || self.is_over(Progress { done, total }, watch) {
                break;
            }
            batches.give_back(batch);
        }
    }

    /// Nothing more can be read; false.
    #[cold]
    fn ended(&mut self, recording: &Recording, end: Result<(), Error>) -> bool {
        match end {
            Ok(()) => self.ends(recording),
            Err(error) => self.ran.failure = Some(error),
        }
        false
    }

    /// Handles the next event; false if it lies after the range.
    #[inline]
    fn event(&mut self, event: &EventRef<'_>) -> bool {
        self.ran.events += 1;
        let activity = self.follower.activity(event);
        self.learn_names();
        if A::EVENTS {
            self.filtered.input(Input::Explained(event));
        }
        let time = match &activity {
            Some(activity) => Some(activity.time),
            None => self.misfits(event.stamp().map(|stamp| stamp.time)),
        };
        if let Some(time) = time
            && !self.comes_to(time, || (event.trace(), event.stream()))
        {
            return false;
        }
        if A::EARLIER && !self.begun {
            self.filtered.input(Input::Earlier(&self.follower.seen(event, activity.as_ref())));
        }
        if A::EVENTS && (self.begun || A::BEFORE) {
            let seen = self.follower.seen(event, activity.as_ref());
            match self.selection.selects_seen(&seen) {
                true => self.filtered.input(Input::Event(&seen)),
                false if A::LEFT_OUT_EVENTS => self.filtered.input(Input::LeftOutEvent(&seen)),
                false => {}
            }
        }
        if let Some(activity) = &activity {
            self.follow(activity);
        }
        true
    }

    /// The same of an event that another thread has decoded.
    #[inline]
    fn decoded(
        &mut self,
        recording: &Recording,
        activity: Option<&Activity<'_>>,
        (time, stream): (Option<Timestamp>, usize),
        read: impl FnOnce(&mut Self, Option<&Activity<'_>>),
    ) -> bool {
        self.ran.events += 1;
        if activity.is_none() {
            self.misfits(time);
        }
        let source = || {
            let stream = &recording.streams()[stream];
            (&recording.traces()[stream.trace_index()], stream)
        };
        if let Some(time) = time
            && !self.comes_to(time, source)
        {
            return false;
        }
        read(self, activity);
        if let Some(activity) = activity {
            self.follow(activity);
        }
        true
    }

    /// An event comes at a time, from a stream of a trace; false if that lies after the range.
    #[inline]
    fn comes_to<'r>(&mut self, time: Timestamp, source: impl FnOnce() -> (&'r Trace, &'r Stream)) -> bool {
        if time > self.range.end {
            self.ends_after_range();
            return false;
        }
        match self.begun {
            false if time >= self.range.begin => self.begin(time),
            false => self.before = true,
            true => {}
        }
        self.ran.end_ns = self.ran.end_ns.max(time);
        if let Some(doubt) = self.order.doubt(time, source) {
            self.doubts_order(&doubt);
        }
        self.sees_again_by(time);
        while (self.begun || A::BEFORE)
            && let Some(unseen) = self.unseen.by(time)
        {
            self.does_not_see(&unseen);
        }
        true
    }

    /// The state advances by an event.
    #[inline]
    fn follow(&mut self, activity: &Activity<'_>) {
        match self.begun {
            true => self.follower.event(activity, &mut self.filtered),
            false if A::BEFORE => self.follower.event(activity, &mut Ends(&mut self.filtered)),
            false => self.follower.event(activity, &mut ()),
        }
        self.filtered.follow(activity, self.follower.state());
    }

    /// Counts an event that has a time, and values that its name does not promise.
    #[cold]
    fn misfits(&mut self, time: Option<Timestamp>) -> Option<Timestamp> {
        let time = time?;
        if !self.begun {
            // Another run does not begin with it.
            self.keeper = None;
        }
        self.ran.misfits += u64::from(time >= self.range.begin && time <= self.range.end);
        Some(time)
    }

    /// There are no more events: nothing else has happened until the recording ended.
    fn ends(&mut self, recording: &Recording) {
        let end = recording.end().unwrap_or(Timestamp::MIN).min(self.range.end);
        self.reaches(end);
        self.ran.end_ns = self.ran.end_ns.max(end);
    }

    /// The recording continues after the range.
    #[cold]
    fn ends_after_range(&mut self) {
        self.reaches(self.range.end);
        self.ran.end_ns = self.range.end;
    }

    /// The recording has come to a time without an event there: a range within it has begun all the same.
    fn reaches(&mut self, time: Timestamp) {
        if !self.begun && self.before && time >= self.range.begin {
            self.begin(time);
        }
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
        let lost = std::mem::take(&mut self.lost_before);
        for loss in lost.into_iter().filter(|loss| loss.to >= begin) {
            self.misses(loss, !A::BEFORE);
        }
    }

    /// Counts the part of a loss that is in the range, and reports it if `is_reported`.
    fn misses(&mut self, loss: Loss, is_reported: bool) {
        let begin = if self.begun { self.ran.begin_ns } else { self.range.begin };
        let (from, to) = (loss.from.max(begin), loss.to.min(self.range.end));
        // If a part lies outside, it is unknown how many of the events do.
        let begins_before = self.before && loss.from < begin;
        let is_split = (begins_before || loss.to > self.range.end) && !self.is_one_of_many;
        let loss = &Loss { from, to, events: loss.events.filter(|_| !is_split), ..loss };
        if !(loss.is_elsewhere || loss.is_of_others || loss.events == Some(0)) {
            self.ran.lossy.note(loss.scope);
        }
        match (loss.scope, loss.events) {
            _ if loss.is_elsewhere => {}
            (Scope::Samples, events) => {
                self.ran.lost_samples = self.ran.lost_samples.and(Losses::of_events(events));
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
        let is_elsewhere = self.counts_unseen(unseen);
        let &Unseen { scope, cpu, from, to, .. } = unseen;
        let to = to.min(self.range.end);
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
                is_elsewhere,
                is_of_order: false,
            }));
        }
    }

    /// Counts what is not seen, if it is in the range. Returns whether it happens on CPUs that are left out.
    fn counts_unseen(&mut self, unseen: &Unseen) -> bool {
        let &Unseen { scope, cpu, is_left_out, to, events, .. } = unseen;
        let to = to.min(self.range.end);
        // Only snapshots have them, whose streams are of one CPU each.
        let is_elsewhere = is_left_out || cpu.is_some_and(|cpu| !self.selection.has_cpu(cpu));
        if to >= self.range.begin && scope != Scope::Samples && !is_elsewhere {
            self.ran.incomplete_until = self.ran.incomplete_until.max(Some(to));
            self.ran.lossy.note(scope);
            if to > self.ran.begin_ns {
                // How many of them a part of the time lacks is not known.
                let events = events.filter(|_| self.range == TimeRange::ALL);
                self.ran.overwritten = self.ran.overwritten.and(Losses::of_events(events));
            }
        }
        is_elsewhere
    }

    fn stay_blind_until(&mut self, scope: Scope, to: Timestamp) {
        if scope == Scope::User {
            self.blind_until = self.blind_until.max(Some(to));
        }
    }

    #[inline]
    fn sees_again_by(&mut self, time: Timestamp) {
        if self.blind_until.is_some() {
            self.is_blind_until(time);
        }
    }

    #[cold]
    fn is_blind_until(&mut self, time: Timestamp) {
        self.lost_until.take_if(|until| *until <= time);
        if let Some(until) = self.blind_until.take_if(|until| *until <= time)
            && (self.begun || A::BEFORE)
        {
            self.filtered.input(Input::LossOver { time: until });
        }
    }

    /// Which of the last events came first is unknown.
    #[cold]
    fn doubts_order(&mut self, doubt: &Loss) {
        if doubt.to < self.range.begin {
            return;
        }
        let (from, to) = self.ran.disordered.unwrap_or((doubt.from, doubt.to));
        self.ran.disordered = Some((from.min(doubt.from), to.max(doubt.to)));
        self.filtered.input(Input::Lost(doubt));
    }

    fn lost(&mut self, missing: &Missing) {
        let loss = loss_of(missing);
        let (lost, Loss { scope, from, to, .. }) = (&missing.lost, loss);
        if from > self.range.end {
            return self.ends_after_range();
        }
        self.reaches(from);
        self.stay_blind_until(scope, to);
        self.lost_until = self.lost_until.max(Some(to).filter(|_| scope == Scope::User));
        match self.begun {
            true => {
                self.ran.end_ns = self.ran.end_ns.max(from);
                self.misses(loss, true);
                self.follower.lost(lost, scope, &mut self.filtered);
            }
            false => {
                if A::BEFORE {
                    self.filtered.input(Input::Lost(&loss));
                }
                if to >= self.range.begin {
                    self.lost_before.push(loss);
                }
                self.follower.lost(lost, scope, &mut ());
            }
        }
    }

    fn finish(mut self) -> Ran {
        if self.ran.failure.is_some() {
            self.ran.lost_samples = self.ran.lost_samples.and(Losses::unknown());
        }
        self.sum_up();
        match self.begun {
            true => {
                while let Some(unseen) = self.unseen.by(self.ran.end_ns) {
                    self.does_not_see(&unseen);
                }
                self.follower.finish(self.ran.end_ns, &mut self.filtered);
            }
            false => {
                self.ran.end_ns = Timestamp::ORIGIN;
                std::mem::take(&mut self.lost_before).into_iter().for_each(|loss| self.misses(loss, false));
            }
        }
        self.ran.names = self.filtered.into_names();
        self.ran
    }

    /// Notes what the state shows about all that was read.
    fn sum_up(&mut self) {
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
        self.ran.died_unseen = if self.ran.modeless { 0 } else { state.died_unseen() };
        self.ran.whole = self.follower.is_whole();
        self.ran.partial = self.follower.has_strangers();
    }
}

impl<A: ReadApart> Run<'_, A> {
    /// Passes on what was read of an event, with its place.
    #[inline]
    fn located(&mut self, read: Option<&mut A::Read>, activity: Option<&Activity<'_>>) {
        if self.begun {
            self.filtered.analysis().located(read, &self.follower.located(activity));
        } else if A::EARLIER {
            self.filtered.analysis().located_earlier(read, &self.follower.located(activity));
        }
    }
}

#[cfg(test)]
mod tests;
