//! What LWPs and user threads did in a time, and who woke them, kept to be read backwards.

use crate::run::Analysis;
use std::collections::HashMap;
use tracewing_trace::super_trace::{Doing, Fold, Lwp, Name, UserThread, Waker};

/// So many stretches and wakes are kept, which take up to 500 MB.
pub(super) const ROOM: usize = 1 << 22;

/// A time in which one did one thing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stretch<D> {
    pub from: i64,
    pub to: i64,
    pub doing: D,
}

/// What an LWP did, and for which user thread, by that one's serial number.
#[derive(Debug, Clone, Copy)]
pub(super) struct LwpDoing {
    pub doing: Doing,
    pub user_thread: Option<usize>,
}

/// What a user thread did.
#[derive(Debug, Clone, Copy)]
pub(super) enum UserDoing {
    /// What the LWP with this serial number did.
    On(usize),
    /// No LWP ran it.
    Off(Doing),
}

/// Who woke or created somebody, by serial number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    Lwp(usize),
    UserThread(usize),
    /// An interrupt or softirq, by its name where that is known.
    Interrupt(Option<Name>),
    /// A softirq, which this LWP raised in a system call.
    Via(Name, usize),
    /// Nobody knows.
    Unknown,
}

impl From<&Waker> for By {
    fn from(waker: &Waker) -> Self {
        match *waker {
            Waker { interrupt: Some(name), lwp: Some(lwp), .. } => By::Via(name, lwp),
            Waker { interrupt: Some(name), .. } => By::Interrupt(Some(name)),
            Waker { user_thread_serial: Some(thread), .. } => By::UserThread(thread),
            Waker { lwp: Some(lwp), .. } => By::Lwp(lwp),
            // The idle thread wakes nobody, so it was an interrupt that was not recorded.
            Waker { tid: Some(0), .. } => By::Interrupt(None),
            _ => By::Unknown,
        }
    }
}

/// The life of an LWP or a user thread.
#[derive(Debug)]
pub(super) struct Line<D> {
    pub process: Option<i32>,
    /// The LWP's number, or the user thread's.
    pub number: u64,
    pub name: String,
    /// In the order of time, without overlaps.
    pub stretches: Vec<Stretch<D>>,
    /// When it was made ready, and by whom.
    pub wakes: Vec<(i64, By)>,
    pub created: Option<By>,
}

impl<D> Default for Line<D> {
    fn default() -> Self {
        Line {
            process: None,
            number: 0,
            name: String::new(),
            stretches: Vec::new(),
            wakes: Vec::new(),
            created: None,
        }
    }
}

impl<D> Line<D> {
    /// The last stretch that begins before a time, and its place.
    pub fn before(&self, time: i64) -> Option<(usize, &Stretch<D>)> {
        let place = self.stretches.partition_point(|stretch| stretch.from < time).checked_sub(1)?;
        Some((place, self.stretches.get(place)?))
    }

    /// By whom it was made ready last between two times, both included.
    pub fn woken(&self, from: i64, to: i64) -> Option<By> {
        let (_, by) = self.wakes[..self.wakes.partition_point(|(at, _)| *at <= to)]
            .last()
            .filter(|(at, _)| *at >= from)?;
        Some(*by)
    }

    fn push(&mut self, from: i64, to: i64, doing: D) -> bool {
        let from = self.stretches.last().map_or(from, |last| from.max(last.to));
        let some = from < to;
        if some {
            self.stretches.push(Stretch { from, to, doing });
        }
        some
    }

    fn is(&mut self, process: Option<i32>, number: u64, name: &str) {
        (self.process, self.number) = (process, number);
        if self.name != name {
            name.clone_into(&mut self.name);
        }
    }
}

/// Who had a CPU.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slot {
    pub from: i64,
    pub to: i64,
    /// The LWP's serial number, and the place of its stretch.
    pub lwp: usize,
    pub place: usize,
}

/// The analysis: keeps what all did, and gives paths at the end ([`CriticalPaths::path`]). It needs the events of the path's time
/// only, and room for about 4 million stretches of time and wakes (500 MB).
#[derive(Debug, Default)]
pub struct CriticalPaths {
    /// By serial number, as the next one.
    pub(super) lwps: HashMap<usize, Line<LwpDoing>>,
    pub(super) user_threads: HashMap<usize, Line<UserDoing>>,
    /// By LWP: the first stretch of which it is not told yet for which user thread it was.
    open: HashMap<usize, usize>,
    kept: usize,
    pub(super) begin: i64,
    /// When there was no more room.
    pub(super) full: Option<i64>,
}

impl CriticalPaths {
    /// An analysis that has seen nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Who had which CPU, in the order of time.
    pub(super) fn cpus(&self) -> HashMap<u32, Vec<Slot>> {
        let mut cpus: HashMap<u32, Vec<Slot>> = HashMap::new();
        for (lwp, line) in &self.lwps {
            for (place, stretch) in line.stretches.iter().enumerate() {
                if let Doing::Running { cpu, .. } = stretch.doing.doing {
                    let slot = Slot { from: stretch.from, to: stretch.to, lwp: *lwp, place };
                    cpus.entry(cpu).or_default().push(slot);
                }
            }
        }
        cpus.values_mut().for_each(|slots| slots.sort_unstable_by_key(|slot| (slot.from, slot.to)));
        cpus
    }

    /// Whether one thing more can be kept.
    fn has_room(&mut self, now: i64) -> bool {
        if self.kept >= ROOM {
            self.full.get_or_insert(now);
        }
        self.full.is_none()
    }
}

impl Analysis for CriticalPaths {
    fn begins(&mut self, time: i64) {
        self.begin = time;
    }

    fn is_done(&self) -> bool {
        self.full.is_some()
    }
}

impl Fold for CriticalPaths {
    fn lwp(&mut self, lwp: &Lwp, doing: Doing, from: i64, to: i64) {
        if !self.has_room(to) {
            return;
        }
        let line = self.lwps.entry(lwp.serial).or_default();
        if line.stretches.is_empty() {
            line.is(lwp.process, lwp.tid.unsigned_abs().into(), &lwp.name);
        }
        self.kept += usize::from(line.push(from, to, LwpDoing { doing, user_thread: None }));
    }

    fn ran(&mut self, lwp: &Lwp, thread: Option<&UserThread>) {
        let Some(line) = self.lwps.get_mut(&lwp.serial) else { return };
        let first = self.open.insert(lwp.serial, line.stretches.len()).unwrap_or(0);
        let (Some(thread), Some(done)) = (thread, line.stretches.get_mut(first..)) else { return };
        let (Some(begin), Some(end)) =
            (done.first().map(|first| first.from), done.last().map(|last| last.to))
        else {
            return;
        };
        done.iter_mut().for_each(|stretch| stretch.doing.user_thread = Some(thread.serial));
        if self.has_room(end) {
            let line = self.user_threads.entry(thread.serial).or_default();
            self.kept += usize::from(line.push(begin, end, UserDoing::On(lwp.serial)));
        }
    }

    fn user_thread(&mut self, thread: &UserThread, doing: Doing, from: i64, to: i64) {
        // What it does while an LWP runs it is told as that one's.
        if self.has_room(to) && doing != Doing::Unknown {
            let line = self.user_threads.entry(thread.serial).or_default();
            self.kept += usize::from(line.push(from, to, UserDoing::Off(doing)));
        }
    }

    fn lwp_woken(&mut self, lwp: &Lwp, by: &Waker, at: i64) {
        if self.has_room(at) {
            self.kept += 1;
            self.lwps.entry(lwp.serial).or_default().wakes.push((at, by.into()));
        }
    }

    fn user_thread_woken(&mut self, thread: &UserThread, by: &Waker, at: i64) {
        if self.has_room(at) {
            self.kept += 1;
            self.user_threads.entry(thread.serial).or_default().wakes.push((at, by.into()));
        }
    }

    fn user_thread_created(&mut self, thread: &UserThread, by: &Waker, at: i64) {
        if self.has_room(at) {
            self.kept += 1;
            self.user_threads.entry(thread.serial).or_default().created = Some(by.into());
        }
    }

    fn lwp_ends(&mut self, lwp: &Lwp) {
        self.open.remove(&lwp.serial);
        if let Some(line) = self.lwps.get_mut(&lwp.serial) {
            line.is(lwp.process, lwp.tid.unsigned_abs().into(), &lwp.name);
        }
    }

    fn user_thread_ends(&mut self, thread: &UserThread) {
        if let Some(line) = self.user_threads.get_mut(&thread.serial) {
            line.is(thread.process, thread.id, &thread.name);
        }
    }
}
