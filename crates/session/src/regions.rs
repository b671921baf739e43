//! The buffers of a recording: one region per user, or per process where that is asked for or needed.
//!
//! Protocol `Publish` lets all processes of a user share a region. Protocol `Smp` does not: a process that dies between
//! reserving and committing would leave a hole in everybody's buffer. So a program without restartable sequences, and
//! every program when the clock is not the time stamp counter, gets a region of its own, which is finished when a pidfd
//! tells of its death.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tracewing_abi::message::Hello;
use tracewing_abi::region::{Clock, Geometry, Protocol};
use tracewing_consumer::clock::{Calibration, TraceClock};
use tracewing_consumer::drain::{Drain, Found, LossRange, OverwrittenRange, StreamSummary, UserTrace};
use tracewing_consumer::snapshot::{Snapshot, Writers};
use tracewing_consumer::survival::BufferFolder;
use tracewing_ctf::model::Uuid;

use crate::options::Sharing;
use crate::socket::Peer;

/// Dead processes whose buffers a flight recorder keeps.
const MOST_KEPT: usize = 32;

/// All regions.
pub(crate) struct Regions {
    clock: TraceClock,
    place: Place,
    sharing: Sharing,
    /// Where events are written; nowhere in a flight recorder.
    trace: Option<UserTrace>,
    users: BTreeMap<u32, Drain>,
    /// By a number that is never used again.
    processes: BTreeMap<u64, Process>,
    next: u64,
    /// Regions that a process id has had so far.
    regions_of: BTreeMap<i32, u32>,
    /// In a flight recorder: the buffers of processes that ended last, oldest first.
    kept: VecDeque<Drain>,
    /// Buffers of processes that ended earlier and are no longer kept.
    dropped: u64,
    ended: Ended,
}

/// Where and how new regions are made.
struct Place {
    geometry: Geometry,
    clock: TraceClock,
    begin: Calibration,
    recording: Uuid,
    /// The regions' mask word.
    majors: u64,
    /// Set where buffers are to be files.
    files: Option<BufferFolder>,
}

impl Place {
    fn drain(&self, name: String, protocol: Protocol) -> Result<Drain, String> {
        let Self { geometry, clock, recording, .. } = *self;
        let drain = match &self.files {
            Some(folder) => Drain::in_folder(folder, name, geometry, protocol, &clock, recording),
            None => Drain::new(name, geometry, protocol, &clock, recording),
        };
        let drain = drain.map_err(|error| error.to_string())?;
        drain.tell_real_time(&clock, &self.begin);
        drain.region().majors().store(self.majors, Ordering::Relaxed);
        Ok(drain)
    }

    /// A region is done with: all of it was written, or is given up.
    fn let_go(&self, drain: &Drain) {
        if let Some(folder) = &self.files {
            folder.remove(drain.name());
        }
    }
}

/// A region that belongs to one process.
struct Process {
    pid: Pid,
    pidfd: OwnedFd,
    drain: Drain,
}

/// What is left of regions that are finished.
#[derive(Default)]
pub(crate) struct Ended {
    pub streams: Vec<StreamSummary>,
    pub losses: Vec<LossRange>,
    pub overwritten: Vec<OverwrittenRange>,
    pub damages: Vec<String>,
}

/// Numbers for the live line.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Totals {
    pub events: u64,
    pub lost: u64,
    pub bytes: u64,
}

/// A region that a program may use.
pub(crate) struct Joined<'a> {
    pub memory: BorrowedFd<'a>,
    pub size: u64,
    /// Whether other processes write to it as well.
    pub shared: bool,
    /// Set where the region is a new one of a process.
    pub watch: Option<Watch<'a>>,
}

/// A process whose death is to be waited for.
pub(crate) struct Watch<'a> {
    /// By which to call [`Regions::process_ended`].
    pub number: u64,
    /// Readable once it is dead.
    pub pidfd: BorrowedFd<'a>,
}

impl Regions {
    /// None yet. They are drained into `trace`, or without one kept for snapshots. All major classes are on.
    pub(crate) fn new(
        geometry: Geometry,
        clock: TraceClock,
        begin: Calibration,
        sharing: Sharing,
        recording: Uuid,
        trace: Option<UserTrace>,
        files: Option<BufferFolder>,
    ) -> Self {
        Self {
            clock,
            place: Place { geometry, clock, begin, recording, majors: u64::MAX, files },
            sharing,
            trace,
            users: BTreeMap::new(),
            processes: BTreeMap::new(),
            next: 0,
            regions_of: BTreeMap::new(),
            kept: VecDeque::new(),
            dropped: 0,
            ended: Ended::default(),
        }
    }

    /// The region for a program that said hello.
    ///
    /// # Errors
    /// In words, for the user.
    pub(crate) fn join(&mut self, peer: Peer, hello: &Hello) -> Result<Joined<'_>, String> {
        let publishes = hello.can_publish && self.clock.kind() == Clock::Tsc;
        let protocol = if publishes { Protocol::Publish } else { Protocol::Smp };
        if publishes && self.sharing == Sharing::User {
            let drain = match self.users.entry(peer.uid) {
                Entry::Occupied(entry) => entry.into_mut(),
                Entry::Vacant(entry) => {
                    let name = format!("uid{}", peer.uid);
                    entry.insert(self.place.drain(name, protocol)?)
                }
            };
            let memory = drain.memory();
            return Ok(Joined {
                memory: memory.as_fd(),
                size: memory.size() as u64,
                shared: true,
                watch: None,
            });
        }
        let (number, is_new) = match self.shared_by_copies(peer, protocol) {
            Some(number) => (number, false),
            None => (self.new_process(peer, protocol)?, true),
        };
        let process = self.processes.get(&number).ok_or("the process has ended")?;
        let memory = process.drain.memory();
        Ok(Joined {
            memory: memory.as_fd(),
            size: memory.size() as u64,
            shared: false,
            watch: is_new.then(|| Watch { number, pidfd: process.pidfd.as_fd() }),
        })
    }

    /// Several copies of the library in a process, and what it executes, can use one `Publish` region.
    fn shared_by_copies(&self, peer: Peer, protocol: Protocol) -> Option<u64> {
        let same = |process: &Process| {
            protocol == Protocol::Publish
                && process.pid == peer.pid
                && process.drain.region().protocol() == Protocol::Publish
                && !has_ended(&process.pidfd)
        };
        self.processes.iter().find(|(_, process)| same(process)).map(|(number, _)| *number)
    }

    fn new_process(&mut self, peer: Peer, protocol: Protocol) -> Result<u64, String> {
        let pidfd = pidfd_open(peer.pid, PidfdFlags::empty()).map_err(|errno| errno.to_string())?;
        let pid = peer.pid.as_raw_nonzero();
        let number = self.next;
        // Process ids come back, and a process can need several regions: the first is called by the id alone.
        let count = self.regions_of.entry(pid.get()).or_insert(0);
        *count += 1;
        let name = if *count == 1 { format!("pid{pid}") } else { format!("pid{pid}-{count}") };
        let drain = self.place.drain(name, protocol)?;
        self.processes.insert(number, Process { pid: peer.pid, pidfd, drain });
        self.next += 1;
        Ok(number)
    }

    /// Changes the mask word of all regions, those to come included: one store for each. Writers look at it for each
    /// event.
    pub(crate) fn set_majors(&mut self, majors: u64) {
        self.place.majors = majors;
        let processes = self.processes.values().map(|process| &process.drain);
        for drain in self.users.values().chain(processes) {
            drain.region().majors().store(majors, Ordering::Relaxed);
        }
    }

    /// Whether an event of the class with this id was written; a flight recorder does not know.
    pub(crate) fn has_met(&self, id: u16) -> Option<bool> {
        self.trace.as_ref().map(|trace| trace.has_met(id))
    }

    /// Writes what is due everywhere.
    ///
    /// # Errors
    /// The trace cannot be written any more.
    pub(crate) fn poll(
        &mut self,
        flush: Duration,
        interval: Duration,
    ) -> Result<Found, tracewing_consumer::Error> {
        let mut found = Found::default();
        let processes = self.processes.values_mut().map(|process| &mut process.drain);
        for drain in self.users.values_mut().chain(processes) {
            let Some(trace) = &mut self.trace else {
                drain.watch(&self.clock);
                continue;
            };
            let one = drain.poll(trace, &self.clock, flush, interval)?;
            found.fullest = found.fullest.max(one.fullest);
            found.written += one.written;
        }
        Ok(found)
    }

    /// A process with a region of its own is dead: writes the rest and lets the memory go; a flight recorder keeps it for
    /// a while, since the next snapshot may be about that very process.
    ///
    /// # Errors
    /// The trace cannot be written any more.
    pub(crate) fn process_ended(&mut self, number: u64) -> Result<(), tracewing_consumer::Error> {
        let Some(mut process) = self.processes.remove(&number) else { return Ok(()) };
        let Some(trace) = &mut self.trace else {
            process.drain.watch(&self.clock);
            self.kept.push_back(process.drain);
            if self.kept.len() > MOST_KEPT
                && let Some(oldest) = self.kept.pop_front()
            {
                self.dropped += 1;
                self.place.let_go(&oldest);
                self.ended.take(&oldest);
            }
            return Ok(());
        };
        let result = process.drain.finish(trace, &self.clock);
        if result.is_ok() {
            self.place.let_go(&process.drain);
        }
        self.ended.take(&process.drain);
        result
    }

    /// Adds what all buffers hold to a flight recorder's snapshot.
    ///
    /// # Errors
    /// A file of it cannot be written.
    pub(crate) fn snapshot(
        &mut self,
        snapshot: &mut Snapshot,
        is_over: bool,
    ) -> Result<(), tracewing_consumer::Error> {
        let writers = if is_over { Writers::Ending } else { Writers::Living };
        for drain in self.users.values_mut() {
            snapshot.add(drain, writers)?;
        }
        for process in self.processes.values_mut() {
            let writers = if has_ended(&process.pidfd) { Writers::Dead } else { writers };
            snapshot.add(&mut process.drain, writers)?;
        }
        self.kept.iter_mut().try_for_each(|drain| snapshot.add(drain, Writers::Dead))
    }

    /// Dead processes whose buffers a flight recorder keeps no longer.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Tells all writers that the recording is over.
    pub(crate) fn close(&self) {
        let processes = self.processes.values().map(|process| &process.drain);
        self.users.values().chain(processes).for_each(Drain::close);
    }

    /// Closes all regions, writes what is left (or counts it lost if the trace cannot be written), and gives what they
    /// amount to.
    pub(crate) fn finish(&mut self, write: bool) -> (Ended, Result<(), tracewing_consumer::Error>) {
        self.close();
        let mut result = Ok(());
        let processes = std::mem::take(&mut self.processes).into_values().map(|process| process.drain);
        let kept = std::mem::take(&mut self.kept);
        for mut drain in std::mem::take(&mut self.users).into_values().chain(processes).chain(kept) {
            match &mut self.trace {
                Some(trace) if write && result.is_ok() => result = drain.finish(trace, &self.clock),
                Some(_) => drain.abandon(&self.clock),
                None => drain.watch(&self.clock),
            }
            self.ended.take(&drain);
        }
        (std::mem::take(&mut self.ended), result)
    }

    /// Numbers so far.
    pub(crate) fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        let processes = self.processes.values().map(|process| &process.drain);
        let living = self.users.values().chain(processes).chain(&self.kept).flat_map(Drain::summary);
        for stream in living.chain(self.ended.streams.iter().cloned()) {
            totals.events += stream.events;
            totals.lost = totals.lost.saturating_add(stream.lost);
            totals.bytes += stream.bytes;
        }
        totals
    }
}

impl Ended {
    fn take(&mut self, drain: &Drain) {
        self.streams.extend(drain.summary());
        self.losses.extend(drain.losses().cloned());
        self.overwritten.extend(drain.overwritten().cloned());
        self.damages.extend(drain.damages());
    }
}

/// Whether the process of a pidfd is dead: the descriptor is readable then.
fn has_ended(pidfd: &OwnedFd) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut file = [PollFd::new(pidfd, PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut file, Some(&now)).is_ok_and(|ready| ready > 0)
}
