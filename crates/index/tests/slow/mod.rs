//! A slow model: the states of all threads and tasks of a recording in lists, and sums of them in the form of
//! the analysis.

use std::collections::BTreeMap;
use tracewing_analysis::{Analysis, Input, Part, Ran, ThreadsTable, Times};
use tracewing_index::RowKind;
use tracewing_timeline::Class;
use tracewing_trace::super_trace::{Change, Doing, Fold, Mode, Name};
use tracewing_units::{Duration, Timestamp};

/// Times by class and by what they are about, as far as the analysis distinguishes them.
pub type Sums = BTreeMap<(Class, String), u64>;

/// What one thread or task did.
#[derive(Debug, Default)]
struct Life {
    number: u64,
    is_left_out: bool,
    spans: Vec<(Doing, Timestamp, Timestamp)>,
    /// What it did for the user thread that it runs, and user mode before this time was of unknown mode.
    pending: Vec<(Doing, Timestamp, Timestamp)>,
    doubted: Option<Timestamp>,
}

/// What all threads and tasks did.
#[derive(Debug, Default)]
pub struct Lives {
    lwps: BTreeMap<usize, Life>,
    tasks: BTreeMap<usize, Life>,
}

impl Fold for Lives {
    fn change(&mut self, change: Change<'_>) {
        match change {
            Change::LwpDid { lwp, doing, from, to } => {
                let life = self.lwps.entry(lwp.serial.0).or_default();
                life.spans.push((doing, from, to));
                if lwp.runs_user_thread() {
                    life.pending.push((doing, from, to));
                }
            }
            Change::LwpRan { lwp, thread } => {
                let pending = std::mem::take(&mut self.lwps.entry(lwp.serial.0).or_default().pending);
                if let Some(thread) = thread {
                    self.tasks.entry(thread.serial.0).or_default().spans.extend(pending);
                }
            }
            Change::LwpHidesCalls { lwp } => {
                let life = self.lwps.entry(lwp.serial.0).or_default();
                life.doubted = Some(lwp.reported_to());
                for (doing, ..) in &mut life.pending {
                    if let Doing::Running { mode: mode @ Mode::User, .. } = doing {
                        *mode = Mode::Unknown;
                    }
                }
            }
            Change::UserThreadDid { thread, doing, from, to } => {
                self.tasks.entry(thread.serial.0).or_default().spans.push((doing, from, to));
            }
            Change::LwpEnds { lwp } => {
                let life = self.lwps.entry(lwp.serial.0).or_default();
                (life.number, life.is_left_out) = (u64::from(lwp.tid.0.cast_unsigned()), !lwp.followed);
            }
            Change::UserThreadEnds { thread } => {
                self.tasks.entry(thread.serial.0).or_default().number = thread.id.0;
            }
            _ => {}
        }
    }
}

impl Analysis for Lives {
    const EVENTS: bool = false;

    fn input(&mut self, _: Input<'_>) {}
}

impl Lives {
    /// The sums of a window, by number.
    pub fn sums(
        &self,
        ran: &Ran,
        tasks: bool,
        begin: Timestamp,
        (from, to): (Duration, Duration),
    ) -> BTreeMap<u64, Vec<Sums>> {
        let mut all: BTreeMap<u64, Vec<Sums>> = BTreeMap::new();
        let [from, to] = [from, to].map(|time| begin + time);
        let lives = if tasks { &self.tasks } else { &self.lwps };
        for life in lives.values().filter(|life| tasks || !ran.partial || !life.is_left_out) {
            let spans = life.spans.iter().map(|(doing, begin, end)| {
                let is_doubted = life.doubted.is_some_and(|doubted| *end <= doubted);
                let ns = *end.min(&to) - *begin.max(&from);
                (key_of(*doing, is_doubted, &|name| ran.names.get(name)), ns.as_ns())
            });
            all.entry(life.number).or_default().push(summed(spans));
        }
        without_empty(all)
    }
}

fn key_of<'n>(doing: Doing, is_doubted: bool, text: &dyn Fn(Name) -> &'n str) -> (Class, String) {
    let about = |name: Option<Name>| name.map_or("", text).to_owned();
    match doing {
        Doing::Unknown => (Class::Unknown, String::new()),
        Doing::Running { mode: Mode::User, .. } if !is_doubted => (Class::User, String::new()),
        Doing::Running { mode: Mode::SystemCall(_), .. } => (Class::System, String::new()),
        Doing::Running { mode: Mode::Interrupt(by), .. } => (Class::Interrupt, about(by)),
        Doing::Running { .. } => (Class::Running, String::new()),
        Doing::Runnable { .. } => (Class::Ready, String::new()),
        Doing::Blocked { on } => (Class::Blocked, about(on)),
        Doing::Nested => (Class::Nested, String::new()),
    }
}

/// What the analysis distinguishes of a state.
pub fn key(class: Class, about: &str) -> (Class, String) {
    match class {
        Class::Blocked | Class::Interrupt => (class, about.to_owned()),
        Class::Preempted => (Class::Ready, String::new()),
        _ => (class, String::new()),
    }
}

pub fn summed(parts: impl Iterator<Item = ((Class, String), u64)>) -> Sums {
    let mut sums = Sums::new();
    for (key, ns) in parts.filter(|(_, ns)| *ns > 0) {
        *sums.entry(key).or_default() += ns;
    }
    sums
}

/// Those that do anything, in an order that does not depend on where they are from.
pub fn without_empty(mut all: BTreeMap<u64, Vec<Sums>>) -> BTreeMap<u64, Vec<Sums>> {
    for sums in all.values_mut() {
        sums.retain(|sums| !sums.is_empty());
        sums.sort();
    }
    all.retain(|_, sums| !sums.is_empty());
    all
}

/// Whether all that the analysis has is there. What else is there has no known state in the window: it
/// appears after it.
pub fn holds(ours: &[Sums], theirs: &[Sums]) -> bool {
    let mut left = ours.to_vec();
    let has_all = theirs.iter().all(|sums| {
        let place = left.iter().position(|ours| ours == sums);
        place.map(|place| left.swap_remove(place)).is_some()
    });
    has_all && left.iter().all(|sums| sums.keys().all(|(class, _)| *class == Class::Unknown))
}

pub fn sums_of_threads(table: &ThreadsTable, tasks: bool) -> BTreeMap<u64, Vec<Sums>> {
    let mut all: BTreeMap<u64, Vec<Sums>> = BTreeMap::new();
    if tasks {
        for task in &table.user_threads {
            let number = task.thread.expect("few tasks").0;
            all.entry(number).or_default().push(sums_of(&task.times));
        }
    } else {
        for thread in &table.threads {
            all.entry(thread.tid.0.cast_unsigned().into()).or_default().push(sums_of(&thread.times));
        }
    }
    without_empty(all)
}

fn sums_of(times: &Times) -> Sums {
    let of_mode = times.user_ns + times.system_ns + times.interrupted_ns;
    let plain = [
        (Class::Unknown, times.unknown_ns),
        (Class::User, times.user_ns),
        (Class::System, times.system_ns),
        (Class::Running, times.running_ns - of_mode),
        (Class::Ready, times.waiting_ns),
        (Class::Nested, times.nested_ns),
    ];
    let plain = plain.into_iter().map(|(class, ns)| ((class, String::new()), ns.as_ns()));
    let part = |class| move |part: &Part| ((class, part.on.clone().unwrap_or_default()), part.ns.as_ns());
    let blocked = times.blocked_on.iter().map(part(Class::Blocked));
    let interrupted = times.interrupted_by.iter().map(part(Class::Interrupt));
    summed(plain.chain(blocked).chain(interrupted))
}

/// Whether a row is of a thread.
pub fn of_thread(kind: RowKind) -> bool {
    matches!(kind, RowKind::Thread(_))
}
