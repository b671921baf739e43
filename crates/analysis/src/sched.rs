//! The scheduler's decisions: each interval in which an LWP had a CPU, how long it had waited for it, and its
//! waker.
//!
//! The figures are those of `perf sched timehist` and `perf sched latency`, and unknown where events do not
//! prove them.

use crate::analysis::{Analysis, Input};
use crate::run::Ran;
use crate::times::grow;
use tracewing_trace::super_trace::TaskState;
use tracewing_trace::super_trace::{Change, Doing, Fold, Lwp, Name, Waker};
use tracewing_units::{Cpu, Duration, Pid, Tid, Timestamp};

/// An interval in which an LWP had a CPU, reported when it ends. Times are in nanoseconds.
#[derive(Debug)]
pub struct Slice<'a> {
    /// The LWP in its state at the end of the slice.
    pub lwp: &'a Lwp,
    /// Where; `None` if no switch to or from it was seen.
    pub cpu: Option<Cpu>,
    /// When it got the CPU, on the recording's clock; `None` if unknown.
    pub begin: Option<Timestamp>,
    /// When it left it; `None` if unknown, for instance because the recording ends before.
    pub end: Option<Timestamp>,
    /// How long it had been off CPUs before; `None` if that began before its first event.
    pub wait_ns: Option<Duration>,
    /// How much of that it was ready: since it was woken, or all of it if it had been preempted.
    pub delay_ns: Option<Duration>,
    /// How long it is known to have run.
    pub run_ns: Duration,
    /// State in which it left the CPU; `None` where `end` is.
    pub state: Option<TaskState>,
    /// Its waker, if it had slept.
    pub waker: Option<Waker>,
}

/// Takes time slices, in the order of their ends.
pub trait SliceSink {
    /// Takes a slice that has just ended.
    fn slice(&mut self, slice: &Slice<'_>);

    /// Adds time in which no event shows whether an LWP had a CPU.
    fn unknown(&mut self, _lwp: &Lwp, _ns: Duration) {}

    /// An LWP has ended, or the recording has.
    fn lwp_ends(&mut self, _lwp: &Lwp) {}

    /// A name, reported before it is used.
    fn name(&mut self, _name: Name, _text: &str) {}

    /// Whether it needs no more slices, so that reading can stop.
    fn is_done(&self) -> bool {
        false
    }
}

/// The analysis: reports each time slice to `S`.
#[derive(Debug, Default)]
pub struct Slices<S> {
    /// Receives the slices.
    pub sink: S,
    /// By serial number.
    lwps: Vec<Progress>,
    /// Whether the recording says that it follows some LWPs only.
    of_some: bool,
    /// Whether it is known of any that it does.
    follows: bool,
}

/// How far an LWP is: since it last got a CPU, or left one.
#[derive(Debug, Default, Clone)]
struct Progress {
    /// The current slice.
    cpu: Option<Cpu>,
    begin: Option<Timestamp>,
    run_ns: Duration,
    /// What was before it, or is until the next.
    wait_ns: Option<Duration>,
    delay_ns: Option<Duration>,
    waker: Option<Waker>,
    /// A wake that came while it ran. It is what wakes it if it came just before it slept.
    early: Option<Waker>,
}

impl Progress {
    fn slice<'a>(&self, lwp: &'a Lwp, end: Option<(Timestamp, TaskState)>) -> Slice<'a> {
        Slice {
            lwp,
            cpu: self.cpu,
            begin: self.begin,
            end: end.map(|(at, _)| at),
            wait_ns: self.wait_ns,
            delay_ns: self.delay_ns,
            run_ns: self.run_ns,
            state: end.map(|(_, state)| state),
            waker: self.waker,
        }
    }
}

impl<S> Slices<S> {
    /// An analysis that has seen nothing yet.
    pub fn new(sink: S) -> Self {
        Slices { sink, lwps: Vec::new(), of_some: false, follows: false }
    }

    #[inline]
    fn of(&mut self, lwp: &Lwp) -> &mut Progress {
        if self.lwps.len() <= lwp.serial.0 {
            self.lwps.resize_with(lwp.serial.0 + 1, Progress::default);
        }
        &mut self.lwps[lwp.serial.0]
    }
}

impl<S: SliceSink> Slices<S> {
    /// Its continuation is unknown.
    fn breaks_off(&mut self, lwp: &Lwp) {
        let progress = std::mem::take(self.of(lwp));
        if !progress.run_ns.is_zero() {
            self.sink.slice(&progress.slice(lwp, None));
        }
    }
}

impl<S: SliceSink> Analysis for Slices<S> {
    const EVENTS: bool = false;
    const CONTINUES: bool = true;

    const AT_ONCE: bool = true;

    fn is_done(&self) -> bool {
        self.sink.is_done()
    }

    #[inline(always)]
    fn input(&mut self, input: Input<'_>) {
        match input {
            Input::FollowsSome => self.of_some = true,
            Input::Name { name, text } => self.name(name, text),
            Input::LeftOut(change) => self.left_out(change),
            _ => {}
        }
    }
}

impl<S: SliceSink> Slices<S> {
    fn name(&mut self, name: Name, text: &str) {
        self.sink.name(name, text);
    }

    /// A filter leaves this out: a wait of which a part is not selected is unknown, not shorter.
    fn left_out(&mut self, change: Change<'_>) {
        match change {
            Change::LwpDid { lwp, doing: Doing::Runnable { .. } | Doing::Blocked { .. }, .. } => {
                let progress = self.of(lwp);
                (progress.wait_ns, progress.delay_ns) = (None, None);
            }
            Change::LwpStops { lwp, .. } => self.breaks_off(lwp),
            _ => {}
        }
    }
}

impl<S: SliceSink> Fold for Slices<S> {
    #[inline(always)]
    fn change(&mut self, change: Change<'_>) {
        match change {
            Change::LwpDid { lwp, doing, from, to } => self.lwp(lwp, doing, from, to),
            Change::LwpWoken { lwp, by, .. } => self.lwp_woken(lwp, by),
            Change::LwpRuns { lwp, cpu, at } => self.lwp_runs(lwp, cpu, at),
            Change::LwpStops { lwp, cpu, prev_state, at } => self.lwp_stops(lwp, cpu, prev_state, at),
            Change::LwpEnds { lwp } => self.lwp_ends(lwp),
            _ => {}
        }
    }
}

impl<S: SliceSink> Slices<S> {
    #[inline]
    fn lwp(&mut self, lwp: &Lwp, doing: Doing, from: Timestamp, to: Timestamp) {
        let ns = to - from;
        if ns.is_zero() {
            return;
        }
        if doing == Doing::Unknown {
            self.sink.unknown(lwp, ns);
            return self.breaks_off(lwp);
        }
        let progress = self.of(lwp);
        match doing {
            Doing::Running { .. } => grow(&mut progress.run_ns, ns),
            // It was woken when this began, or it has left a CPU then.
            Doing::Runnable { .. } => {
                progress.delay_ns = Some(progress.delay_ns.unwrap_or_default() + ns);
                progress.wait_ns = progress.wait_ns.map(|wait| wait + ns);
            }
            Doing::Blocked { .. } => {
                progress.early = None;
                progress.wait_ns = progress.wait_ns.map(|wait| wait + ns);
            }
            Doing::Unknown | Doing::Nested => {}
        }
    }

    fn lwp_woken(&mut self, lwp: &Lwp, by: &Waker) {
        let progress = self.of(lwp);
        match progress.cpu {
            Some(_) => progress.early = Some(*by),
            None => drop(progress.waker.get_or_insert(*by)),
        }
    }

    fn lwp_runs(&mut self, lwp: &Lwp, cpu: Cpu, at: Timestamp) {
        let progress = self.of(lwp);
        // If it never slept, the wake came while it was about to sleep.
        progress.waker = progress.waker.or(progress.early.take());
        (progress.cpu, progress.begin, progress.run_ns) = (Some(cpu), Some(at), Duration::ZERO);
    }

    fn lwp_stops(&mut self, lwp: &Lwp, cpu: Cpu, prev_state: TaskState, at: Timestamp) {
        self.follows |= lwp.followed;
        let is_not_followed = self.of_some && self.follows && !lwp.followed;
        let progress = self.of(lwp);
        if is_not_followed {
            // The wake, and when it had a CPU in between, are known only from events other than the
            // recorded ones.
            *progress = Progress { run_ns: progress.run_ns, ..Progress::default() };
        }
        progress.cpu = Some(cpu);
        let slice = progress.slice(lwp, Some((at, prev_state)));
        let early = progress.early.filter(|_| !prev_state.could_continue());
        *progress = Progress {
            wait_ns: Some(Duration::ZERO),
            delay_ns: Some(Duration::ZERO),
            early,
            ..Progress::default()
        };
        self.sink.slice(&slice);
    }

    fn lwp_ends(&mut self, lwp: &Lwp) {
        self.breaks_off(lwp);
        self.sink.lwp_ends(lwp);
    }
}

/// How long one LWP waited for CPUs when it was ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchedLatency {
    /// The process it belongs to, where the events say: its first thread's number.
    pub process: Option<Pid>,
    /// Its thread id, which another LWP may have had before.
    pub tid: Tid,
    /// Its last known name.
    pub name: String,
    /// Whether the recording follows it ([`Lwp::followed`]).
    pub followed: bool,
    /// How long it ran, in nanoseconds.
    pub run_ns: Duration,
    /// For how long no event shows whether it ran.
    pub unknown_ns: Duration,
    /// How often it got a CPU after a wait of known length.
    pub slices: u64,
    /// Total time that it waited, in nanoseconds.
    pub delay_ns: Duration,
    max_ns: Duration,
    /// When that ended and it got a CPU, on the recording's clock; `None` if it never waited.
    pub max_end: Option<Timestamp>,
    /// The waker at that time.
    pub max_waker: Option<Waker>,
}

impl SchedLatency {
    /// How long it waited on average, in nanoseconds; `None` if no wait is known.
    pub fn mean_ns(&self) -> Option<Duration> {
        self.delay_ns.mean(self.slices)
    }

    /// The longest wait, in nanoseconds; `None` if no wait is known.
    pub fn longest_ns(&self) -> Option<Duration> {
        (self.slices > 0).then_some(self.max_ns)
    }

    /// When the longest wait began.
    pub fn max_begin(&self) -> Option<Timestamp> {
        Some(self.max_end?.saturating_sub(self.max_ns))
    }
}

/// Sums of time slices by LWP.
#[derive(Debug, Default)]
pub struct SchedLatencies {
    rows: Vec<SchedLatency>,
    /// The place of an LWP's row, by its serial number.
    places: Vec<Option<usize>>,
    /// Unknown time of an LWP, by its serial number.
    unknown: Vec<Duration>,
    /// Number of LWPs that are not followed, whether or not they have slices.
    strangers: u64,
}

impl SchedLatencies {
    /// Sorted by the longest wait, longest first; and the number of other LWPs, which only appear in events
    /// of these, as in [`ThreadsTable::strangers`](crate::ThreadsTable::strangers).
    pub fn finish(self, ran: &Ran) -> (Vec<SchedLatency>, u64) {
        let mut rows = self.rows;
        for (place, unknown) in self.places.iter().zip(self.unknown) {
            if let Some(place) = place {
                rows[*place].unknown_ns = unknown;
            }
        }
        rows.retain(|row| row.followed || !ran.partial);
        let strangers = if ran.partial { self.strangers } else { 0 };
        rows.sort_by(|a, b| b.max_ns.cmp(&a.max_ns).then(a.tid.cmp(&b.tid)));
        (rows, strangers)
    }
}

impl SliceSink for SchedLatencies {
    fn slice(&mut self, slice: &Slice<'_>) {
        let lwp = slice.lwp;
        if self.places.len() <= lwp.serial.0 {
            self.places.resize(lwp.serial.0 + 1, None);
        }
        let place = *self.places[lwp.serial.0].get_or_insert_with(|| {
            self.rows.push(SchedLatency {
                process: None,
                tid: lwp.tid,
                name: String::new(),
                followed: false,
                run_ns: Duration::ZERO,
                unknown_ns: Duration::ZERO,
                slices: 0,
                delay_ns: Duration::ZERO,
                max_ns: Duration::ZERO,
                max_end: None,
                max_waker: None,
            });
            self.rows.len() - 1
        });
        let row = &mut self.rows[place];
        (row.process, row.followed) = (lwp.process, lwp.followed);
        if row.name != lwp.name {
            row.name.clone_from(&lwp.name);
        }
        grow(&mut row.run_ns, slice.run_ns);
        if let (Some(delay), Some(begin)) = (slice.delay_ns, slice.begin) {
            row.slices += 1;
            grow(&mut row.delay_ns, delay);
            if delay > row.max_ns {
                (row.max_ns, row.max_end) = (delay, Some(begin));
                row.max_waker = slice.waker;
            }
        }
    }

    fn lwp_ends(&mut self, lwp: &Lwp) {
        self.strangers += u64::from(!lwp.followed);
        let place = self.places.get(lwp.serial.0).copied().flatten();
        if let Some(row) = place.map(|place| &mut self.rows[place]) {
            (row.process, row.followed) = (lwp.process, lwp.followed);
        }
    }

    fn unknown(&mut self, lwp: &Lwp, ns: Duration) {
        if self.unknown.len() <= lwp.serial.0 {
            self.unknown.resize(lwp.serial.0 + 1, Duration::ZERO);
        }
        grow(&mut self.unknown[lwp.serial.0], ns);
    }
}
