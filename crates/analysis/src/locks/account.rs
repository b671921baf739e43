//! What is counted of acquisitions: waits, critical sections, and how both are distributed.

use std::collections::{BTreeMap, HashMap};

use tracewing_trace::super_trace::shape;
use tracewing_units::{Caller, Duration, Pid, Task, Tid};
use tracewing_vocabulary::{lock, user_thread};

/// What acquisitions are of, by the name that events have for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(super) enum Kind {
    Mutex,
    Read,
    Write,
    Semaphore,
    Send,
    Receive,
    Notified,
    Spin,
    Condition,
    Barrier,
    Futex,
    KernelSpin,
    KernelMutex,
    KernelRead,
    KernelWrite,
    KernelOther,
}

/// All of them, in the order of their bits in [`Kinds`].
const KINDS: [(Kind, &str); 16] = [
    (Kind::Mutex, "mutex"),
    (Kind::Read, "read"),
    (Kind::Write, "write"),
    (Kind::Semaphore, "semaphore"),
    (Kind::Send, "send"),
    (Kind::Receive, "receive"),
    (Kind::Notified, "notified"),
    (Kind::Spin, "spin"),
    (Kind::Condition, "condition"),
    (Kind::Barrier, "barrier"),
    (Kind::Futex, "futex"),
    (Kind::KernelSpin, "kernel spin"),
    (Kind::KernelMutex, "kernel mutex"),
    (Kind::KernelRead, "kernel read"),
    (Kind::KernelWrite, "kernel write"),
    (Kind::KernelOther, "kernel"),
];

/// Changes with their numbers.
pub(super) const OF_KINDS: u64 = {
    let (mut sum, mut at) = (0_u64, 0);
    while at < KINDS.len() {
        sum = sum.rotate_left(1) ^ shape(KINDS[at].1);
        at += 1;
    }
    sum
};

impl Kind {
    /// The kind of a number.
    pub(super) fn of_number(number: u8) -> Option<Self> {
        KINDS.get(usize::from(number)).map(|(kind, _)| *kind)
    }

    /// What it is called.
    pub(super) fn name(self) -> &'static str {
        KINDS[self as usize].1
    }

    /// Whether the kernel's own events record it: locks of the kernel, and futexes, which are those of
    /// programs as the kernel sees them.
    pub(super) fn is_of_kernel(self) -> bool {
        match self {
            Self::Futex
            | Self::KernelSpin
            | Self::KernelMutex
            | Self::KernelRead
            | Self::KernelWrite
            | Self::KernelOther => true,
            Self::Mutex
            | Self::Read
            | Self::Write
            | Self::Semaphore
            | Self::Send
            | Self::Receive
            | Self::Notified
            | Self::Spin
            | Self::Condition
            | Self::Barrier => false,
        }
    }

    /// Whether only two events together show an acquisition: the begin of a wait, and its end.
    fn needs_pairs(self) -> bool {
        self.is_of_kernel() || matches!(self, Self::Condition | Self::Barrier)
    }

    /// Whether there is a critical section.
    pub(super) fn is_held(self) -> bool {
        matches!(self, Self::Mutex | Self::Read | Self::Write | Self::Spin)
    }

    /// The kind of a lock of the kernel's, by the flags of `contention_begin`
    /// (`include/trace/events/lock.h`).
    pub(super) fn of_kernel_flags(flags: u64) -> Self {
        const SPIN: u64 = 1;
        const READ: u64 = 2;
        const WRITE: u64 = 4;
        const MUTEX: u64 = 32;
        match flags {
            _ if flags & READ != 0 => Self::KernelRead,
            _ if flags & WRITE != 0 => Self::KernelWrite,
            _ if flags & MUTEX != 0 => Self::KernelMutex,
            _ if flags & SPIN != 0 => Self::KernelSpin,
            _ => Self::KernelOther,
        }
    }
}

impl From<lock::Kind> for Kind {
    fn from(kind: lock::Kind) -> Self {
        match kind {
            lock::Kind::Mutex => Self::Mutex,
            lock::Kind::Read => Self::Read,
            lock::Kind::Write => Self::Write,
            lock::Kind::Semaphore => Self::Semaphore,
            lock::Kind::Spin => Self::Spin,
        }
    }
}

impl From<user_thread::Kind> for Kind {
    fn from(kind: user_thread::Kind) -> Self {
        use user_thread::Kind as Task;
        match kind {
            Task::Mutex => Self::Mutex,
            Task::Read => Self::Read,
            Task::Write => Self::Write,
            Task::Semaphore => Self::Semaphore,
            Task::Send => Self::Send,
            Task::Receive => Self::Receive,
            Task::Notified => Self::Notified,
        }
    }
}

/// A thread or task that waits for a lock, or holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Party {
    /// A thread, by its number in the whole system.
    Thread(Tid),
    /// A user thread, by its process and its number there.
    Task(Option<Pid>, Task),
    /// A user thread of a process that no event identifies, by the number of the place that made its request.
    /// Several may share it.
    Place(Option<Pid>, Caller),
}

/// A set of kinds of locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Kinds(u32);

impl Kinds {
    pub(super) fn add(&mut self, kind: Kind) {
        self.0 |= 1 << kind as u8;
    }

    fn kinds(self) -> impl Iterator<Item = Kind> {
        KINDS.iter().map(|(kind, _)| *kind).filter(move |kind| self.0 & (1 << *kind as u8) != 0)
    }

    /// Whether one of them has critical sections.
    pub fn are_held(self) -> bool {
        self.kinds().any(Kind::is_held)
    }

    /// Whether acquisitions of one of them are found by two events each.
    fn need_pairs(self) -> bool {
        self.kinds().any(Kind::needs_pairs)
    }

    /// Whether programs recorded one of them.
    pub fn has_programs(self) -> bool {
        self.kinds().any(|kind| !kind.is_of_kernel())
    }

    /// Whether the kernel recorded one of them.
    pub fn has_kernels(self) -> bool {
        self.kinds().any(Kind::is_of_kernel)
    }

    /// Whether futexes are among them.
    pub fn has_futexes(self) -> bool {
        self.kinds().any(|kind| matches!(kind, Kind::Futex))
    }

    /// The names of the kinds, as the column `kind` has them.
    pub fn names(self) -> Vec<&'static str> {
        self.kinds().map(Kind::name).collect()
    }
}

/// Count, total and extremes of some durations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sum {
    /// Number of durations.
    pub count: u64,
    /// All of them together.
    pub total_ns: Duration,
    /// The shortest duration; 0 without any.
    pub min_ns: Duration,
    /// The longest duration; 0 without any.
    pub max_ns: Duration,
}

impl Sum {
    pub(super) fn add(&mut self, ns: Duration) {
        self.min_ns = if self.count == 0 { ns } else { self.min_ns.min(ns) };
        self.max_ns = self.max_ns.max(ns);
        self.count += 1;
        self.total_ns += ns;
    }

    /// The average, if there is any.
    pub fn mean_ns(&self) -> Option<Duration> {
        self.total_ns.mean(self.count)
    }
}

/// What is counted of some acquisitions.
#[derive(Debug, Clone, Default)]
pub struct Account {
    /// The kinds of the locks that were acquired.
    pub kinds: Kinds,
    /// Number of acquisitions.
    pub acquired: u64,
    /// How often it could not be had: a try, or the time was up.
    pub refused: u64,
    /// Waits whose length is known, including unsuccessful ones.
    pub waits: Sum,
    /// Acquisitions after waits of unknown length.
    pub unknown_waits: u64,
    /// Critical sections whose length is known.
    pub holds: Sum,
    /// Those of unknown length: their end or their beginning is missing.
    pub unknown_holds: u64,
    /// Acquisitions whose wait and release cannot be found: of unknown user threads in a recording without
    /// tickets; all, if only some CPUs are selected.
    pub unpaired: u64,
    /// Whether it is of requests with tickets, whose events may come from several LWPs.
    pub has_tickets: bool,
    /// How often locks were tried before threads slept for them; `None` if not reported.
    pub spins: Option<u64>,
    /// By the holder of the lock: how long was waited for it.
    pub(super) owners: HashMap<Party, Duration>,
    /// By the number of the place that calls, how long was held what was taken there.
    pub(super) held_at: HashMap<Caller, Duration>,
}

impl Account {
    /// Number of acquisitions; `None` if unknown.
    pub fn acquisitions(&self) -> Option<u64> {
        (self.unpaired == 0 || !self.kinds.need_pairs()).then_some(self.acquired)
    }

    /// How often it had to wait; `None` if unknown.
    pub fn waited(&self) -> Option<u64> {
        (self.unpaired == 0).then_some(self.waits.count + self.unknown_waits)
    }

    /// How long it waited; `None` if unknown.
    pub fn known_waits(&self) -> Option<&Sum> {
        let is_unknown = self.unpaired > 0 || (self.waits.count == 0 && self.unknown_waits > 0);
        (!is_unknown).then_some(&self.waits)
    }

    /// How long it was held; `None` if unknown, or if it is nothing that is held.
    pub fn known_holds(&self) -> Option<&Sum> {
        let is_unknown = self.unpaired > 0 || (self.holds.count == 0 && self.unknown_holds > 0);
        (!is_unknown && self.kinds.are_held()).then_some(&self.holds)
    }

    /// Keeps only the counts, without what needs pairs of events.
    pub(super) fn unpair(&mut self) {
        let Self { kinds, acquired, spins, .. } = *self;
        *self = Self { kinds, acquired, spins, unpaired: acquired.max(1), ..Self::default() };
    }

    /// The number of the place where it was held longest.
    pub(super) fn held_longest_at(&self) -> Option<Caller> {
        let places = self.held_at.iter().map(|(caller, ns)| (*ns, *caller));
        places.max().map(|(_, caller)| caller)
    }

    /// The holder during the greatest part of the waiting time, and that part, ns.
    pub fn owner(&self) -> Option<(Party, Duration)> {
        self.owners.iter().map(|(owner, ns)| (*owner, *ns)).max_by_key(|(owner, ns)| (*ns, *owner))
    }
}

/// The bins of a histogram of lengths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Bins {
    /// Each twice as wide as the one before; the first has 0.1 µs.
    #[default]
    Log,
    /// Of 0.1 µs, as in Feather-Trace's paper (3.2), up to 1 ms.
    Linear,
}

/// The first bin's width.
const WIDTH: Duration = Duration::from_ns(100);
/// Linear bins; what is longer is in the last.
const LINEAR: u64 = 10_000;

impl Bins {
    fn number(self, ns: Duration) -> u64 {
        let widths = ns.as_ns() / WIDTH.as_ns();
        match self {
            Self::Log => widths.checked_ilog2().map_or(0, |log| u64::from(log) + 1),
            Self::Linear => widths.min(LINEAR),
        }
    }

    /// Where a bin begins.
    fn begin(self, number: u64) -> Duration {
        match self {
            Self::Log => number.checked_sub(1).map_or(Duration::ZERO, |log| WIDTH * (1 << log)),
            Self::Linear => WIDTH * number,
        }
    }
}

/// How often something was how long, or how much.
#[derive(Debug, Clone, Default)]
pub struct Histogram {
    bins: Bins,
    lengths: BTreeMap<u64, u64>,
    depths: BTreeMap<u64, u64>,
}

impl Histogram {
    pub(super) fn new(bins: Bins) -> Self {
        Self { bins, ..Self::default() }
    }

    pub(super) fn held(&mut self, ns: Duration) {
        *self.lengths.entry(self.bins.number(ns)).or_default() += 1;
    }

    pub(super) fn nested(&mut self, depth: usize) {
        *self.depths.entry(depth as u64).or_default() += 1;
    }

    /// How wide the bins of lengths are.
    pub fn bins(&self) -> Bins {
        self.bins
    }

    /// Critical sections by their length: from how long, up to how long (none for the last bin of linear
    /// ones), how many.
    pub fn lengths(&self) -> impl Iterator<Item = (Duration, Option<Duration>, u64)> + '_ {
        self.lengths.iter().map(|(number, count)| {
            let is_last = self.bins == Bins::Linear && *number == LINEAR;
            (self.bins.begin(*number), (!is_last).then(|| self.bins.begin(number + 1)), *count)
        })
    }

    /// Acquisitions by how many other locks the thread had.
    pub fn depths(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.depths.iter().map(|(depth, count)| (*depth, *count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_lie_in_their_bins() {
        for bins in [Bins::Log, Bins::Linear] {
            for ns in [0, 99, 100, 199, 200, 399, 400, 12_345, 999_999].map(Duration::from_ns) {
                let number = bins.number(ns);
                assert!((bins.begin(number)..bins.begin(number + 1)).contains(&ns), "{bins:?} {ns:?}");
            }
        }
        let mut histogram = Histogram::new(Bins::Linear);
        histogram.held(Duration::MAX);
        assert_eq!(histogram.lengths().collect::<Vec<_>>(), [(Duration::from_ns(1_000_000), None, 1)]);
        let mut histogram = Histogram::new(Bins::Log);
        histogram.held(Duration::MAX);
        assert_eq!(histogram.lengths().count(), 1);
    }

    #[test]
    fn sums_know_their_ends() {
        let mut sum = Sum::default();
        assert_eq!(sum.mean_ns(), None);
        [5, 3, 10].into_iter().for_each(|ns| sum.add(Duration::from_ns(ns)));
        let [total_ns, min_ns, max_ns, mean_ns] = [18, 3, 10, 6].map(Duration::from_ns);
        assert_eq!(sum, Sum { count: 3, total_ns, min_ns, max_ns });
        assert_eq!(sum.mean_ns(), Some(mean_ns));
    }
}
