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

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::process::getuid;
use rustix::system::sysinfo;
use tracewing_abi::message::{Hello, Joining};
use tracewing_abi::region::{Clock, Protocol};
use tracewing_consumer::clock::TraceClock;
use tracewing_consumer::drain::Drain;
use tracewing_consumer::firsts::{Firsts, Found};
use tracewing_consumer::names::Names;
use tracewing_consumer::outside::{Insider, Outside, is_of_other_namespace};
use tracewing_consumer::pace::Pace;
use tracewing_consumer::snapshot::{Contents, Snapshot, Writers};
use tracewing_consumer::trace::UserTrace;
use tracewing_units::Pid;

use crate::credentials::Peer;
use crate::domain::Domain;
use crate::ended::Ended;
use crate::limits::{Limit, Quota};
use crate::maker::Maker;
use crate::not_joined::NotJoined;
use crate::options::Sharing;
use crate::past::Past;

/// Regions that are looked at before other work has its turn.
const MOST_AT_ONCE: usize = 256;
/// Time until a new region is looked at first.
const FIRST_LOOK: Duration = Duration::from_millis(8);
/// Time between two questions whether a region has writers, at first and at most.
const FIRST_QUESTION: Duration = Duration::from_millis(1);
const LAST_QUESTION: Duration = Duration::from_secs(2);

/// Memory that is taken for a program before it writes: its first million events are to cost no page fault.
const PREPARED: usize = 16 << 20;
/// How many programs have that at one time, and how often a further one gets it: not each of thousands that
/// come and go.
const MOST_PREPARED: usize = 4;
const BETWEEN_PREPARED: Duration = Duration::from_millis(250);

/// Regions for children that are not forked yet, or have ended before anybody looked, of one process.
const MOST_SPARES: usize = 128;

/// Process id of the program, [`MANY`] where several share the region, and a number that is never used again.
pub(crate) type Key = (Pid, u64);

/// In place of a process id: several processes.
const MANY: Pid = Pid(0);

/// All regions.
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
    /// What becomes of first events of classes.
    firsts: Arc<Firsts>,
    /// Of the programs of other PID namespaces.
    outside: Arc<Outside>,
    /// What was found of them since the last [`Regions::take_found`], and whose the regions are.
    found: Vec<(Origin, Found)>,
    /// A flight recorder's: whether some program has news.
    has_news: bool,
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
}

/// Numbers for the live line.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Totals {
    pub events: u64,
    pub lost: u64,
    pub bytes: u64,
}

/// A region that a program may use.
pub(crate) struct Joined {
    /// As [`Answer::Welcome`](tracewing_abi::message::Answer::Welcome) has them.
    pub files: Vec<OwnedFd>,
    pub size: u64,
    /// Whether a forked child may write to it as well.
    pub shared: bool,
    /// The number of the region that comes last, where that is for the next child; else 0.
    pub spare: u64,
}

/// The program that a new region is for.
struct Wanted {
    peer: Peer,
    /// Many programs; this is the first of them.
    for_many: bool,
    /// Children that are forked use it, too.
    shared: bool,
    /// The next child that is forked.
    for_child: bool,
    protocol: Protocol,
    /// Whether its numbers are those of another PID namespace.
    is_insider: bool,
}

/// Whether a process is of another PID namespace. One that has ended has said which number it knew: a child
/// can end before its region is made. One that lies spoils the numbers of its own events only.
fn is_insider(pid: Pid, hello: &Hello) -> bool {
    is_of_other_namespace(pid).unwrap_or(hello.pid != pid.as_unsigned())
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
            outside: Arc::new(Outside::new(firsts.clone())),
            firsts,
            found: Vec::new(),
            has_news: false,
        }
    }

    /// The region for a process that said hello.
    ///
    /// # Errors
    /// There are no buffers for it.
    pub(crate) fn join(&mut self, peer: Peer, hello: &Hello) -> Result<Joined, NotJoined> {
        let publishes = hello.can_publish && self.clock.kind() == Clock::Tsc;
        let protocol = if publishes { Protocol::Publish } else { Protocol::Smp };
        let is_insider = is_insider(peer.pid, hello);
        if hello.joining == Joining::Parent {
            // Those that it had may have gone to children that were too short to say so.
            self.ask_for_writers(peer.pid, |living| living.is_spare);
            let (spare, files) = self.spare(peer, protocol, is_insider).ok_or(NotJoined::Spares)?;
            return Ok(Joined { files, size: self.size(), shared: false, spare });
        }
        let shares = publishes && self.sharing != Sharing::Process;
        // The numbers of threads in one region mean those of one process.
        let domain = shares.then(|| Domain::of(peer)).flatten().filter(|_| !is_insider);
        // A program that can become another user shares with none, children included.
        let shared = domain.is_some();
        let domain = domain.filter(|_| self.sharing == Sharing::User);
        let existing = domain.as_ref().and_then(|domain| self.shared.get(domain)).copied();
        let key = match existing {
            Some(key) => key,
            None => {
                let for_many = domain.is_some();
                let wanted = Wanted { peer, for_many, shared, for_child: false, protocol, is_insider };
                let key = self.make(wanted)?;
                self.shared.extend(domain.map(|domain| (domain, key)));
                key
            }
        };
        let mut files = self.files_of(key)?;
        let has_spare = !shared && hello.joining == Joining::Program;
        let spare = has_spare.then(|| self.spare(peer, protocol, is_insider)).flatten();
        let spare = spare.map_or(0, |(number, more)| {
            files.extend(more);
            number
        });
        Ok(Joined { files, size: self.size(), shared, spare })
    }

    fn size(&self) -> u64 {
        self.maker.geometry.size() as u64
    }

    fn files_of(&self, key: Key) -> Result<Vec<OwnedFd>, NotJoined> {
        let living = self.living.get(&key).ok_or(NotJoined::Gone)?;
        living.drain.for_writers().map_err(NotJoined::Descriptors)
    }

    /// A region for the next child of a process: its number, and the descriptors. `None` where there is no
    /// plenty of regions, or where each takes room on a disk: then children ask for theirs.
    fn spare(&mut self, peer: Peer, protocol: Protocol, is_insider: bool) -> Option<(u64, Vec<OwnedFd>)> {
        let pid = peer.pid;
        let others = self.living.range((pid, 0)..=(pid, u64::MAX)).filter(|(_, living)| living.is_spare);
        let has_plenty = self.living.len() < self.most / 2 && others.count() < MOST_SPARES;
        if !has_plenty || self.maker.files.is_some() || !self.quota.take_for_child(peer) {
            return None;
        }
        let wanted = Wanted { peer, for_many: false, shared: false, for_child: true, protocol, is_insider };
        let Ok(key) = self.add(wanted) else {
            self.quota.give_back_for_child(peer);
            return None;
        };
        Some((key.1, self.files_of(key).ok()?))
    }

    /// A child has taken over the region with this number.
    pub(crate) fn take_over(&mut self, child: Peer, number: u64) {
        let is_it = |(key, living): &(&Key, &Living)| {
            key.1 == number && living.is_spare && living.peer.uid == child.uid
        };
        let Some(key) = self.living.iter().find(is_it).map(|(key, _)| *key) else { return };
        let Some(mut living) = self.living.remove(&key) else { return };
        self.agenda.remove(&(living.due, key));
        // A parent of many children does not use up its quota by their regions.
        if self.quota.take(child, 1) {
            self.quota.give_back_for_child(living.peer);
            living.holder = Some(child);
        }
        living.is_spare = false;
        living.drain.insider().into_iter().for_each(|insider| insider.is(child.pid));
        let key = (child.pid, number);
        self.agenda.insert((living.due, key));
        self.living.insert(key, living);
    }

    /// A new region.
    fn make(&mut self, wanted: Wanted) -> Result<Key, NotJoined> {
        if self.living.len() >= self.most {
            return Err(NotJoined::OpenFiles { most: self.most });
        }
        let peer = wanted.peer;
        if !self.quota.take(peer, 1) {
            return Err(NotJoined::Quota);
        }
        let key = self.add(wanted);
        if key.is_err() {
            self.quota.give_back(peer, 1);
        }
        key
    }

    fn add(&mut self, wanted: Wanted) -> Result<Key, NotJoined> {
        let Wanted { peer, for_many, shared, for_child, protocol, is_insider } = wanted;
        let pid = if for_many { MANY } else { peer.pid };
        let label = match protocol {
            Protocol::Publish => format!("uid{}", peer.uid),
            Protocol::Smp | Protocol::Local => format!("pid{pid}"),
        };
        let name = if pid == MANY { label.clone() } else { format!("pid{pid}") };
        let mut drain = self.maker.drain(&name, label, protocol, for_child)?;
        if !shared {
            drain = drain.with_children()?;
        }
        let insider = is_insider.then(|| match for_child {
            true => Insider::child(self.outside.clone()),
            false => Insider::of(self.outside.clone(), peer.pid),
        });
        let drain = drain.of_insider(insider);
        let now = Instant::now();
        let is_prepared = !for_child && self.is_to_be_prepared(now);
        if is_prepared {
            drain.memory().allocate(self.maker.geometry, PREPARED);
            self.prepared = Some(now);
        }
        self.next += 1;
        let key = (pid, self.next);
        let pace = Pace::new(self.flush);
        let due = now + FIRST_LOOK.min(pace.longest());
        self.agenda.insert((due, key));
        let (question, asked, news, is_spare) = (None, now, 0, for_child);
        let holder = (!for_child).then_some(peer);
        let living = Living { drain, peer, holder, pace, due, question, asked, is_prepared, is_spare, news };
        self.living.insert(key, living);
        Ok(key)
    }

    fn is_to_be_prepared(&self, now: Instant) -> bool {
        self.prepared.is_none_or(|last| now.duration_since(last) >= BETWEEN_PREPARED)
            && self.living.values().filter(|living| living.is_prepared).count() < MOST_PREPARED
    }

    /// A connection of a process has ended: it is dead, or has executed another file, or has closed what it
    /// did not know.
    pub(crate) fn left(&mut self, pid: Pid) {
        if pid != MANY {
            self.ask_for_writers(pid, |_| true);
        }
    }

    /// Soon asks whether regions of a process have writers.
    fn ask_for_writers(&mut self, pid: Pid, which: impl Fn(&Living) -> bool) {
        let now = Instant::now();
        for (key, living) in self.living.range_mut((pid, 0)..=(pid, u64::MAX)) {
            if which(living) {
                living.question = Some(Duration::ZERO);
                self.agenda.remove(&(living.due, *key));
                living.due = now;
                self.agenda.insert((now, *key));
            }
        }
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

    /// Looks at a region at once: what its packets waited for is known now.
    pub(crate) fn hurry(&mut self, origin: Origin) {
        if let Some(living) = self.living.get_mut(&origin.key) {
            self.agenda.remove(&(living.due, origin.key));
            living.due = Instant::now();
            self.agenda.insert((living.due, origin.key));
        }
    }

    /// Keeps what a look at a region has found. Says whether packets wait for that.
    fn keep_found(&mut self, peer: Peer, key: Key) -> bool {
        let found = self.firsts.take_found();
        let is_waited_for = found.is_waited_for();
        if is_waited_for || !found.processes.is_empty() {
            self.found.push((Origin { peer, is_only: key.0 != Pid(0), key }, found));
        }
        is_waited_for
    }

    /// Whether an event of the class with this id was written; a flight recorder does not know.
    pub(crate) fn has_seen(&self, id: u16) -> Option<bool> {
        self.trace.as_ref().map(|trace| trace.has_seen(id))
    }

    /// Time until the next region is due.
    pub(crate) fn remaining(&self) -> Option<Duration> {
        self.agenda.first().map(|(due, _)| due.saturating_duration_since(Instant::now()))
    }

    /// Looks at the regions that are due, or at as many as the rest of the loop can wait for.
    ///
    /// # Errors
    /// The trace cannot be written any more.
    pub(crate) fn poll(&mut self) -> Result<(), tracewing_consumer::Error> {
        let begin = Instant::now();
        for _ in 0..MOST_AT_ONCE {
            match self.agenda.first() {
                Some((due, _)) if *due <= begin => {}
                _ => break,
            }
            let Some((_, key)) = self.agenda.pop_first() else { break };
            let Some(mut living) = self.living.remove(&key) else { continue };
            let ended = living.ask_if_over();
            let result = self.look(&mut living, ended);
            // What is found in it at last is decided before it goes.
            let is_waited_for = self.keep_found(living.peer, key);
            if ended && result.is_ok() && !is_waited_for && self.can_retire(&living.drain) {
                match living.holder {
                    Some(holder) => self.quota.give_back(holder, 1),
                    None => self.quota.give_back_for_child(living.peer),
                }
                self.retire(living.drain)?;
                self.keep_found(living.peer, key);
                continue;
            }
            if ended {
                living.question = Some(FIRST_QUESTION); // the disk is waited for
            }
            let next = living.pace.remaining().min(living.question.unwrap_or(Duration::MAX));
            living.due = Instant::now() + next;
            self.agenda.insert((living.due, key));
            self.living.insert(key, living);
            result?;
        }
        Ok(())
    }

    /// Writes all that the regions hold by now, and gives the bytes written. `waits`: for the disk, where it
    /// must.
    ///
    /// # Errors
    /// The trace cannot be written any more.
    pub(crate) fn write_now(&mut self, waits: bool) -> Result<u64, tracewing_consumer::Error> {
        let mut written = 0;
        let keys: Vec<Key> = self.living.keys().copied().collect();
        for key in keys {
            let (Some(trace), Some(living)) = (&mut self.trace, self.living.get_mut(&key)) else { continue };
            if waits {
                trace.wait_for_room(living.drain.waiting());
            }
            let found = living.drain.poll(trace, &self.clock, Duration::ZERO, Duration::ZERO)?;
            written += found.written;
            let peer = living.peer;
            self.keep_found(peer, key);
        }
        Ok(written)
    }

    fn look(&mut self, living: &mut Living, is_over: bool) -> Result<(), tracewing_consumer::Error> {
        let (begin, longest) = (Instant::now(), living.pace.longest());
        let flush = if is_over { Duration::ZERO } else { self.flush };
        let found = match &mut self.trace {
            Some(trace) => living.drain.poll(trace, &self.clock, flush, longest)?,
            None => {
                living.drain.watch(&self.clock);
                let news = living.drain.region().news().load(Ordering::Relaxed); // orders nothing
                self.has_news |= std::mem::replace(&mut living.news, news) != news;
                tracewing_consumer::drain::Found::default()
            }
        };
        living.pace.looked(begin, Instant::now(), &found);
        Ok(())
    }

    /// Whether what a region holds need not wait for the disk.
    fn can_retire(&self, drain: &Drain) -> bool {
        self.trace.as_ref().is_none_or(|trace| trace.has_room(drain.waiting()))
    }

    /// No process can write to a region any more: writes the rest and lets the memory go. A flight recorder
    /// keeps what was in it, since the next snapshot may be about that very program.
    fn retire(&mut self, mut drain: Drain) -> Result<(), tracewing_consumer::Error> {
        let Some(trace) = &mut self.trace else {
            drain.watch(&self.clock);
            self.ended.take(&drain);
            if drain.is_untouched() {
                self.maker.let_go(drain.name());
                return Ok(());
            }
            for given_up in self.past.keep(drain, &self.firsts) {
                self.maker.let_go(&given_up);
            }
            return Ok(());
        };
        let result = drain.retire(trace, &self.clock);
        if result.is_ok() {
            self.maker.let_go(drain.name());
        }
        self.ended.take(&drain);
        drain.give_back(trace);
        result
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

    /// Programs that ended and whose events a flight recorder keeps no longer.
    pub(crate) fn dropped(&self) -> u64 {
        self.past.dropped()
    }

    /// Lets all writers know that the recording is over.
    pub(crate) fn close(&self) {
        self.living.values().for_each(|living| living.drain.close());
    }

    /// Closes all regions, writes what is left (or counts it lost if the trace cannot be written), and gives
    /// what they amount to.
    pub(crate) fn finish(&mut self, write: bool) -> (Ended, Result<(), tracewing_consumer::Error>) {
        self.close();
        self.agenda.clear();
        let mut result = Ok(());
        for Living { mut drain, .. } in std::mem::take(&mut self.living).into_values() {
            match &mut self.trace {
                Some(trace) if write && result.is_ok() => result = drain.retire(trace, &self.clock),
                Some(_) => drain.abandon(&self.clock),
                None => drain.watch(&self.clock),
            }
            self.ended.take(&drain);
            if let Some(trace) = &mut self.trace {
                drain.give_back(trace);
            }
        }
        let mut ended = std::mem::take(&mut self.ended);
        if let Some(trace) = &mut self.trace {
            let (losses, settled) = trace.settle(&self.clock);
            ended.losses.extend(losses);
            ended.set_streams(trace.summary());
            result = result.and(settled);
        }
        (ended, result)
    }

    /// Numbers so far.
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
            totals.bytes += stream.bytes;
        }
        totals
    }
}

impl Living {
    /// Asks whether no process can write to it any more, unless it is too early to ask again.
    fn ask_if_over(&mut self) -> bool {
        let Some(wait) = self.question else { return false };
        if self.asked.elapsed() < wait {
            return false;
        }
        self.asked = Instant::now();
        self.question = Some((2 * wait).clamp(FIRST_QUESTION, LAST_QUESTION));
        !self.drain.has_writers()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_has_ended_is_of_the_namespace_whose_number_it_has_said() {
        let hello = |pid: i32| {
            let joining = Joining::Child;
            Hello { version: 0, pid: pid.cast_unsigned(), can_publish: true, joining, copy: 0, waits: [0; 2] }
        };
        let (own, ended) = (std::process::id().cast_signed(), i32::MAX);
        let of = |pid, said| is_insider(Pid(pid), &hello(said));
        assert_eq!([of(ended, 7), of(ended, ended), of(own, 7), of(own, own)], [true, false, false, false]);
    }
}
