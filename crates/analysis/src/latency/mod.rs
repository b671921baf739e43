//! How long it takes from one event to another: from the kernel's message to its treatment by the program,
//! from a request to its answer (reactivity, as in Danjean, Wacrenier, Namyst: An Efficient Multi-level Trace
//! Toolkit, Figure 3).
//!
//! | file | does |
//! |---|---|
//! | `pairs` | which begin an end belongs to |
//! | `durations` | how the durations are distributed |
//! | `groups` | the same by what their ends have in common |
//! | `fault` | why a question does not fit a recording |
//! | `episodes` | what the threads of the longest periods did meanwhile: a second pass |

mod durations;
mod episodes;
mod fault;
mod groups;
mod pairs;

pub use durations::{Bar, Distribution, Durations};
pub use episodes::Episodes;
pub use fault::QuestionFault;
pub use groups::Group;
pub use pairs::{Moment, Nesting};

use crate::actor::Actor;
use crate::analysis::{Analysis, Input, Loss};
use crate::shown::ShownTimes;
use groups::Groups;
use pairs::Pairs;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use tracewing_rules::Scope;
use tracewing_trace::super_trace::{Change, Fold, LwpSerial, Seen, TaskSerial};
use tracewing_trace::{Error, EventRef, Filter, Glob, Keys, Predicate, Recording, Selection, Variable};
use tracewing_units::{Duration, Timestamp};
use tracewing_vocabulary::{context, describes_next};

/// Events with which periods begin or end: `NAME` or `NAME where CONDITION`, NAME being a pattern ([`Glob`]).
#[derive(Debug, Clone, PartialEq)]
pub struct EventPattern {
    name: String,
    condition: Option<Predicate>,
}

impl std::str::FromStr for EventPattern {
    type Err = tracewing_trace::PredicateError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // No name has a space in it.
        let text = text.trim();
        let (name, condition) = match text.split_once(" where ").or(text.strip_suffix(" where").zip(Some("")))
        {
            Some((name, condition)) => (name, Some(Predicate::parse(condition)?)),
            None => (text, None),
        };
        Ok(Self { name: name.trim().to_owned(), condition })
    }
}

impl EventPattern {
    /// What a user should know of its condition in a recording ([`Filter::remark`]).
    pub fn remark(&self, recording: &Recording) -> Option<String> {
        self.filter().remark(recording)
    }

    fn filter(&self) -> Filter {
        let (events, predicate) = (vec![self.name.clone()], self.condition.clone());
        Filter { events, predicate, ..Filter::default() }
    }

    /// The pattern for names.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Question {
    /// Where a period begins.
    pub begin: EventPattern,
    /// The events at which a period ends.
    pub end: EventPattern,
    /// What must be equal: a variable of the beginning and one of the end.
    pub by: Vec<(Variable, Variable)>,
    /// Which begin an end belongs to where there are several.
    pub nesting: Nesting,
    /// Variables of the end by which periods are also grouped.
    pub group: Vec<Variable>,
    /// Number of the longest periods that are reported.
    pub worst: usize,
}

impl Question {
    /// Whether a period may begin on one CPU and end on another. Without a key, or with the CPU in it, the
    /// events of each CPU have periods of their own by intention.
    fn crosses_cpus(&self) -> bool {
        let is_cpu = |variable: &Variable| {
            variable.scope == Scope::Context && context::CPU.contains(&variable.name.as_str())
        };
        !self.by.is_empty() && !self.by.iter().any(|(begin, end)| is_cpu(begin) || is_cpu(end))
    }
}

/// The result of [`Latency`].
#[derive(Debug, Default, Clone, PartialEq, Serialize)]
pub struct LatencyTable {
    /// How long the periods are.
    #[serde(flatten)]
    pub distribution: Distribution,
    /// Begins without an end.
    pub unmatched_begins: u64,
    /// Ends without a beginning.
    pub unmatched_ends: u64,
    /// Begins and ends that lack a value to match them by.
    pub without_key: u64,
    /// Unmatched begins that were dropped to limit memory before their end could come.
    pub forgotten: u64,
    /// Periods during which events were lost: a beginning or an end of them may be among those.
    pub across_losses: u64,
    /// Periods that are not counted, as the filter chooses CPUs, and only their begin or only their end was
    /// on one of these. `None` if unknown, as in an extract of some CPUs: then periods may be wrong.
    pub across_left_out: Option<u64>,
    /// The periods by the values of `--by`, those with the longest total time first.
    pub groups: Vec<Group>,
    /// The longest ones, longest first.
    pub worst: Vec<Period>,
}

/// From one event to another.
#[derive(Debug, Default, Clone, PartialEq, Serialize)]
pub struct Period {
    /// From the begin event to the end event.
    #[serde(rename = "duration_ns")]
    pub ns: Duration,
    /// When and where the begin event was emitted.
    pub begin: Moment,
    /// When and where the end event was emitted.
    pub end: Moment,
    /// What they have in common: variables of the beginning, and their values.
    pub key: Vec<(String, String)>,
    /// The end's LWP, and its activity during the period. For a switch it is the one that leaves the CPU, or,
    /// if periods are matched by the one that gets it (`next_tid`), that one.
    #[serde(rename = "thread")]
    pub lwp: Option<Episode>,
    /// The user thread of the end event, for a switch chosen in the same way.
    #[serde(rename = "task")]
    pub user_thread: Option<Episode>,
}

/// What an LWP or a user thread did during a period.
#[derive(Debug, Default, Clone, PartialEq, Serialize)]
pub struct Episode {
    /// The LWP or user thread.
    #[serde(rename = "subject")]
    pub actor: Actor,
    /// What for how long: together the whole period, or as much of it as is known of this one.
    pub times: ShownTimes,
    /// Parts of [`ShownTimes::system_ns`]: system calls by their names, longest first, in nanoseconds.
    pub system_calls: Vec<(String, Duration)>,
    /// Part of [`ShownTimes::waiting_ns`]: it had been taken from its CPU, or had yielded, rather than been
    /// woken.
    pub preempted_ns: Option<Duration>,
    /// How often it was woken, if wakes are recorded.
    pub wakeups: Option<u64>,
    /// Whether it is a task whose wakes tokio's hooks do not report ([`UserThread::is_hooked`]).
    ///
    /// [`UserThread::is_hooked`]: tracewing_trace::super_trace::UserThread::is_hooked
    #[serde(skip)]
    pub hooked: bool,
    /// What woke it last.
    pub woken_by: Option<Actor>,
    /// When that was, in nanoseconds on the recording's clock.
    pub woken_ns: Option<Timestamp>,
}

/// The begins, or the ends.
#[derive(Debug)]
struct Side {
    glob: Glob,
    selection: Selection,
    keys: Keys,
}

impl Side {
    fn new<'v>(
        pattern: &EventPattern,
        by: impl Iterator<Item = &'v Variable>,
        recording: &Recording,
    ) -> Result<Self, Error> {
        let EventPattern { name, .. } = pattern;
        if !recording.has_event(name) {
            return Err(QuestionFault::NoEvent(recording.no_event(name)).into());
        }
        let glob = Glob::new(name.as_str());
        let keys = Keys::new(by.cloned().collect());
        if let Some(variable) = keys.missing(recording, |name| glob.matches(name)).first() {
            return Err(QuestionFault::NoMatch(name.clone(), (*variable).clone()).into());
        }
        Ok(Side { selection: Selection::new(&pattern.filter(), recording)?, glob, keys })
    }

    /// Reads the key of an event of this side; `None` if it is none.
    fn key(&mut self, seen: &Seen<'_>, key: &mut Vec<u8>) -> Option<bool> {
        if !self.selection.selects_seen(seen) {
            return None;
        }
        key.clear();
        Some(self.keys.read(seen, key))
    }
}

/// Which sides a class of events is on, judged by its name.
#[derive(Debug, Clone, Copy)]
struct Sides {
    begin: bool,
    end: bool,
}

/// The analysis of `tracewing latency`: periods from one event to another.
#[derive(Debug)]
pub struct Latency {
    begin: Side,
    end: Side,
    /// By stream and event class.
    sides: Vec<Vec<Option<Sides>>>,
    /// A switch that ends a period is whose it leads to.
    ends_at_next: bool,
    pairs: Pairs,
    durations: Durations,
    groups: Groups,
    longest: BinaryHeap<Reverse<Candidate>>,
    worst: usize,
    without_key: u64,
    across_losses: u64,
    /// Whether begins and ends on CPUs that are left out are known, or none can be missing in a period.
    knows_all_cpus: bool,
    /// What the filter would let through of all CPUs, where it lets through those of some.
    of_all_cpus: Option<Selection>,
    /// Until then, something was lost.
    lost_until: Timestamp,
    key: Vec<u8>,
}

/// A period that may be one of the longest. Ordered by length; of equal ones, the first is the longer one.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    ns: Duration,
    begins: Reverse<Timestamp>,
    end: Moment,
    begin: Moment,
    key: Vec<u8>,
    /// Serial numbers of the end's.
    lwp: Option<LwpSerial>,
    user_thread: Option<TaskSerial>,
}

impl Latency {
    /// An analysis of a recording.
    ///
    /// # Errors
    /// [`Error::Usage`] where the recording has no such events, or they have nothing to match them by.
    pub fn new(question: &Question, recording: &Recording) -> Result<Self, Error> {
        let by = &question.by;
        let begin = Side::new(&question.begin, by.iter().map(|(begin, _)| begin), recording)?;
        let end = Side::new(&question.end, by.iter().map(|(_, end)| end), recording)?;
        let ends_at_next = by.iter().any(|(_, end)| describes_next(&end.name));
        let groups = Groups::new(&question.group, ends_at_next);
        let ends = question.end.name();
        if let Some(variable) = groups.missing(recording, &Glob::new(ends)) {
            return Err(QuestionFault::NoGroup(ends.to_owned(), variable.clone()).into());
        }
        Ok(Self {
            begin,
            end,
            sides: Vec::new(),
            ends_at_next,
            pairs: Pairs::new(question.nesting),
            durations: Durations::default(),
            groups,
            longest: BinaryHeap::new(),
            worst: question.worst,
            without_key: 0,
            across_losses: 0,
            knows_all_cpus: !recording.is_extract_of_cpus() || !question.crosses_cpus(),
            of_all_cpus: None,
            lost_until: Timestamp::MIN,
            key: Vec::new(),
        })
    }

    /// Finds the periods of all CPUs where this filter chooses some, and counts those that it lets through.
    ///
    /// # Errors
    /// [`Error::Usage`] if the filter does not fit the recording.
    pub fn filtered(
        mut self,
        question: &Question,
        filter: &Filter,
        recording: &Recording,
    ) -> Result<Self, Error> {
        let of_all = Filter { cpus: Vec::new(), ..filter.clone() };
        if question.crosses_cpus() {
            // What a condition on CPUs would let through of the others is not known.
            self.knows_all_cpus &= !of_all.chooses_cpus();
            if !filter.cpus.is_empty() {
                self.of_all_cpus = Some(Selection::new(&of_all, recording)?);
            }
        }
        Ok(self)
    }

    /// The answer; what threads did in the longest periods is not in it yet, but in what the second value
    /// finds.
    pub fn finish(mut self) -> (LatencyTable, Episodes) {
        self.pairs.finish();
        let mut longest = self.longest.into_vec();
        longest.sort();
        let mut episodes = Episodes::default();
        let mut worst = Vec::new();
        for Reverse(Candidate { ns, begin, end, key, lwp, user_thread, .. }) in longest {
            episodes.add(begin.ns, end.ns, lwp, user_thread);
            let key = self.begin.keys.shown(&key);
            worst.push(Period { ns, begin, end, key, lwp: None, user_thread: None });
        }
        let table = LatencyTable {
            distribution: self.durations.finish(),
            unmatched_begins: self.pairs.unmatched_begins,
            unmatched_ends: self.pairs.unmatched_ends,
            without_key: self.without_key,
            forgotten: self.pairs.forgotten,
            across_losses: self.across_losses,
            across_left_out: self.knows_all_cpus.then_some(self.pairs.chosen_in_part),
            groups: self.groups.finish(),
            worst,
        };
        (table, episodes)
    }

    fn sides(&mut self, event: &EventRef<'_>) -> Sides {
        let (stream, class) = (event.stream_index(), event.decoded().class_index());
        if let Some(Some(sides)) = self.sides.get(stream).and_then(|known| known.get(class)) {
            return *sides;
        }
        let decoded = event.decoded();
        let name = decoded.class().name.as_deref().unwrap_or_default();
        let sides = Sides { begin: self.begin.glob.matches(name), end: self.end.glob.matches(name) };
        if self.sides.len() <= stream {
            self.sides.resize_with(stream + 1, Vec::new);
        }
        let known = &mut self.sides[stream];
        if known.len() <= class {
            known.resize(class + 1, None);
        }
        known[class] = Some(sides);
        sides
    }

    fn ends(&mut self, seen: &Seen<'_>, ns: Timestamp) {
        let Some(begin) = self.pairs.end(&self.key, true) else { return };
        let seen = if self.ends_at_next { &seen.at_next() } else { seen };
        let length = ns - begin.ns;
        self.durations.add(length);
        self.groups.add(seen, length);
        self.across_losses += u64::from(begin.ns <= self.lost_until);
        let is_longer = match self.longest.peek() {
            Some(Reverse(shortest)) if self.longest.len() >= self.worst => length > shortest.ns,
            _ => self.worst > 0,
        };
        if !is_longer {
            return;
        }
        if self.longest.len() >= self.worst {
            self.longest.pop();
        }
        let (end, lwp, user_thread) = (Moment::of(&seen.place, ns), seen.place.lwp, seen.place.thread_serial);
        let (begins, key) = (Reverse(begin.ns), self.key.clone());
        self.longest.push(Reverse(Candidate { ns: length, begins, begin, end, key, lwp, user_thread }));
    }
}

impl Fold for Latency {
    fn change(&mut self, _: Change<'_>) {}
}

impl Analysis for Latency {
    const CONTINUES: bool = true;
    const LEFT_OUT_EVENTS: bool = true;

    #[inline(always)]
    fn input(&mut self, input: Input<'_>) {
        match input {
            Input::Event(seen) => self.event(seen),
            Input::LeftOutEvent(seen) => self.left_out(seen),
            Input::Lost(lost) => self.lost(lost),
            _ => {}
        }
    }
}

impl Latency {
    fn event(&mut self, seen: &Seen<'_>) {
        let sides = self.sides(seen.event);
        let Some(stamp) = seen.event.stamp().filter(|_| sides.begin || sides.end) else { return };
        // An event that is both ends one period and begins the next.
        if sides.end
            && let Some(has_key) = self.end.key(seen, &mut self.key)
        {
            match has_key {
                true => self.ends(seen, stamp.time),
                false => self.without_key += 1,
            }
        }
        if sides.begin
            && let Some(has_key) = self.begin.key(seen, &mut self.key)
        {
            match has_key {
                true => self.pairs.begin(&self.key, Moment::of(&seen.place, stamp.time), true),
                false => self.without_key += 1,
            }
        }
    }

    fn left_out(&mut self, seen: &Seen<'_>) {
        if !self.of_all_cpus.as_mut().is_some_and(|selection| selection.selects_seen(seen)) {
            return;
        }
        let sides = self.sides(seen.event);
        let Some(stamp) = seen.event.stamp() else { return };
        if sides.end && self.end.key(seen, &mut self.key) == Some(true) {
            self.pairs.end(&self.key, false);
        }
        if sides.begin && self.begin.key(seen, &mut self.key) == Some(true) {
            self.pairs.begin(&self.key, Moment::of(&seen.place, stamp.time), false);
        }
    }

    fn lost(&mut self, lost: &Loss) {
        self.lost_until = self.lost_until.max(lost.to);
    }
}
