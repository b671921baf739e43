//! The buffers of a recording: a region for each process, forked children included. [`Sharing`] says which
//! other choices there are.
//!
//! A process keeps what it has mapped when it drops rights. A later look at its rights would come too late:
//! only a region that no other process has can be damaged by it without harm to others. So a process keeps
//! its region from the children that it forks ([`Joined::shared`]), and has a second one, a spare, for the
//! next of them, which takes it over without asking (reported later by [`Joining::Heir`]).
//!
//! Protocol `Publish` lets processes share a region. Protocol `Smp` does not: a process that dies between
//! reserving and committing would leave a hole in the others' buffer. So a process without restartable
//! sequences, and every process when the clock is not the time stamp counter, gets a region of its own.
//!
//! A region is finished when no process can write to it any more, which the kernel knows
//! ([`SharedMemory::has_writers`](tracewing_consumer::memory::SharedMemory::has_writers)). It is asked when
//! the program's connection ends, and then less and less often while there are children.
//!
//! Regions are looked at one by one, each at its own [`Pace`]: thousands of quiet ones cost little.
//!
//! | file | does |
//! |---|---|
//! | `join` | gives each process its region, and one for its next child |
//! | `look` | looks at them, writes what they hold, and retires them |

mod join;
mod look;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::getuid;
use rustix::system::sysinfo;
use tracewing_consumer::clock::TraceClock;
use tracewing_consumer::drain::Drain;
use tracewing_consumer::firsts::{Firsts, Found};
use tracewing_consumer::names::Names;
use tracewing_consumer::outside::Outside;
use tracewing_consumer::pace::Pace;
use tracewing_consumer::snapshot::{Contents, Snapshot, Writers};
use tracewing_consumer::trace::UserTrace;
use tracewing_units::Pid;

use crate::context::Contexts;
use crate::credentials::Peer;
use crate::domain::Domain;
use crate::ended::Ended;
use crate::limits::{Limit, Quota};
use crate::maker::Maker;
use crate::options::Sharing;
use crate::past::Past;

pub(crate) use join::Joined;

/// Process id of the program, [`MANY`] where several share the region, and a number that is never used again.
pub(crate) type Key = (Pid, u64);

/// In place of a process id: several processes.
const MANY: Pid = Pid(0);

pub(crate) struct Regions {
    clock: TraceClock,
    maker: Maker,
    sharing: Sharing,
    flush: Duration,
    /// Where events are written; nowhere in a flight recorder.
    trace: Option<UserTrace>,
    living: BTreeMap<Key, Living>,
    /// When to look at which.
    agenda: BTreeSet<(Instant, Key)>,
    shared: BTreeMap<Domain, Key>,
    next: u64,
    most: usize,
    /// What processes and users have of them.
    quota: Quota,
    /// When a region was prepared last.
    prepared: Option<Instant>,
    past: Past,
    ended: Ended,
    damages: Damages,
    /// What becomes of first events of classes.
    firsts: Arc<Firsts>,
    /// Of the programs of other PID namespaces.
    outside: Arc<Outside>,
    /// What was found of them since the last [`Regions::take_found`], and whose the regions are.
    found: Vec<(Origin, Found)>,
    /// A flight recorder's: whether some program has news.
    has_news: bool,
    /// The context of the programs' threads, if that is recorded.
    contexts: Option<Contexts>,
}

/// What was found damaged in regions that are finished, and for which processes these were made.
#[derive(Default)]
pub(crate) struct Damages {
    pub lines: Vec<(Peer, String)>,
    /// Number of those for which there was no room.
    pub more: u64,
}

/// The process for which a region was made, and whether that and its children are the only ones that write to
/// it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origin {
    pub peer: Peer,
    pub is_only: bool,
    key: Key,
}

/// A region that has writers, or had some a moment ago.
struct Living {
    drain: Drain,
    /// The process for which it was made.
    peer: Peer,
    /// The one that it counts for: none while it is for a child, which then counts for the user alone.
    holder: Option<Peer>,
    pace: Pace,
    /// Its place in the agenda.
    due: Instant,
    /// Time until the next question whether it has writers. `None` while its program is connected.
    question: Option<Duration>,
    asked: Instant,
    is_prepared: bool,
    /// It is for a child of the process, and none has said yet that it has taken it over.
    is_spare: bool,
    /// Its word for news, as it was last seen.
    news: u64,
    /// How full its fullest buffer was at the last look, 0 to 1; 0 in a flight recorder.
    fullest: f64,
}

/// Numbers for the live line.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Totals {
    pub events: u64,
    pub lost: u64,
    /// Whether more were lost.
    pub is_lost_unknown: bool,
    pub bytes: u64,
}

impl Totals {
    /// Both together.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            events: self.events + other.events,
            lost: self.lost.saturating_add(other.lost),
            is_lost_unknown: self.is_lost_unknown | other.is_lost_unknown,
            bytes: self.bytes + other.bytes,
        }
    }
}

impl Regions {
    /// None yet, in a process that may open `files` files. They are drained into `trace`, or without one kept
    /// for snapshots.
    pub(crate) fn new(
        maker: Maker,
        clock: TraceClock,
        sharing: Sharing,
        flush: Duration,
        trace: Option<UserTrace>,
        files: usize,
    ) -> Self {
        let past = Past::new(maker.geometry, maker.files.is_some());
        let firsts = trace.as_ref().map(|trace| trace.firsts().clone()).unwrap_or_default();
        // Memory and connection, and of each CPU a stream and its index.
        let most = (files / (2 + 2 * maker.geometry.cpus())).max(1);
        let memory = sysinfo();
        let memory = (memory.totalram as u64).saturating_mul(memory.mem_unit.into());
        let limit = Limit::of_regions(most, maker.geometry.size(), memory);
        Self {
            clock,
            maker,
            sharing,
            flush,
            trace,
            living: BTreeMap::new(),
            agenda: BTreeSet::new(),
            shared: BTreeMap::new(),
            next: 0,
            most,
            quota: Quota::new(getuid().as_raw(), limit),
            prepared: None,
            past,
            ended: Ended::default(),
            damages: Damages::default(),
            outside: Arc::new(Outside::new(firsts.clone())),
            firsts,
            found: Vec::new(),
            has_news: false,
            contexts: None,
        }
    }

    /// Has the context of threads be recorded, too.
    pub(crate) fn with_contexts(mut self, contexts: Option<Contexts>) -> Self {
        if contexts.is_some() {
            self.take_announced(); // kept from now on
        }
        self.contexts = contexts;
        self
    }

    /// The context of the programs' threads, if that is recorded.
    pub(crate) fn contexts(&mut self) -> Option<&mut Contexts> {
        self.contexts.as_mut()
    }

    /// Changes the mask word of all regions, those to come included: one store for each. Writers look at it
    /// for each event.
    pub(crate) fn set_majors(&mut self, majors: u64) {
        self.maker.majors = majors;
        for living in self.living.values() {
            living.drain.set_majors(majors);
        }
    }

    /// What becomes of first events of classes.
    pub(crate) fn firsts(&self) -> &Firsts {
        &self.firsts
    }

    /// Programs may announce threads from now on, in the class with this id.
    pub(crate) fn begin_announcements(&self, id: u16) {
        self.outside.begin(id);
        self.trace.as_ref().and_then(UserTrace::names).into_iter().for_each(|names: &Names| names.begin(id));
    }

    /// Threads of other PID namespaces that have ended before they were seen.
    pub(crate) fn unseen(&self) -> u32 {
        self.outside.unseen()
    }

    /// What was found of first events since the last call.
    pub(crate) fn take_found(&mut self) -> Vec<(Origin, Found)> {
        std::mem::take(&mut self.found)
    }

    /// Whether programs of a flight recorder have made classes since the last call.
    pub(crate) fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.has_news)
    }

    /// What was found damaged in regions that were finished since the last call.
    pub(crate) fn take_damages(&mut self) -> Damages {
        std::mem::take(&mut self.damages)
    }

    /// The processes for which regions were made that may have writers, and those that have taken one over.
    pub(crate) fn processes(&self) -> impl Iterator<Item = Pid> {
        self.living.iter().flat_map(|((pid, _), living)| [*pid, living.peer.pid])
    }

    /// Keeps what a look at a region has found. Says whether packets wait for that.
    fn keep_found(&mut self, peer: Peer, key: Key) -> bool {
        let found = self.firsts.take_found();
        let is_waited_for = found.is_waited_for();
        if is_waited_for || !found.processes.is_empty() {
            self.found.push((Origin { peer, is_only: key.0 != MANY, key }, found));
        }
        is_waited_for
    }

    /// Whether an event of the class with this id was written; `None` in a flight recorder.
    pub(crate) fn has_seen(&self, id: u16) -> Option<bool> {
        self.trace.as_ref().map(|trace| trace.has_seen(id))
    }

    /// Adds to a snapshot what a flight recorder keeps of programs that have ended.
    ///
    /// # Errors
    /// A file of it cannot be written.
    pub(crate) fn add_past(&mut self, snapshot: &mut Snapshot) -> Result<(), tracewing_consumer::Error> {
        self.past.add_to(snapshot, &self.firsts)
    }

    /// The regions to which processes write, for [`Regions::copy`].
    pub(crate) fn keys(&self) -> Vec<Key> {
        self.living.keys().copied().collect()
    }

    /// Copies what a region holds, for a snapshot, and looks for classes of first events in it.
    pub(crate) fn copy(&mut self, key: Key, is_over: bool) -> Option<Contents> {
        let living = self.living.get_mut(&key)?;
        let writers = if is_over { Writers::Ending } else { Writers::Living };
        let writers = if living.drain.memory().has_writers() { writers } else { Writers::Dead };
        living.drain.watch(&self.clock);
        let contents = Contents::of(&mut living.drain, writers);
        contents.scan(&self.firsts);
        let peer = living.peer;
        self.keep_found(peer, key);
        Some(contents)
    }

    /// How full the fullest buffer was at the last look at it, 0 to 1.
    pub(crate) fn fullest(&self) -> f64 {
        self.living.values().map(|living| living.fullest).fold(0.0, f64::max)
    }

    pub(crate) fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        let living = self.living.values().flat_map(|living| living.drain.summary());
        let ended = match &self.trace {
            Some(trace) => trace.summary(),
            None => self.ended.streams(),
        };
        for stream in living.chain(ended) {
            totals.events += stream.events;
            totals.lost = totals.lost.saturating_add(stream.lost);
            // A flight recorder's buffers overwrite what no snapshot needs any more.
            totals.is_lost_unknown |= match self.trace {
                Some(_) => stream.loses_more(),
                None => stream.is_lost_unknown,
            };
            totals.bytes += stream.bytes;
        }
        totals
    }
}
