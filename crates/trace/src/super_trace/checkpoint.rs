//! Checkpoints: the state between two messages of a recording, as bytes, so that a later reader of a window
//! continues from there and need not read what is before.
//!
//! A checkpoint is made where a merge [pauses](Pauses), which changes nothing of what it gives. It is used
//! only if a merge that begins there stands exactly where the one that paused stood: then both give the same
//! from there on.

use super::adapter::{Adapter, General, NAMES};
use super::counted::Counted;
use super::coverage::Coverage;
use super::doing::Waker;
use super::known::Known;
use super::programs::Programs;
use super::seen::Follower;
use super::serial::{LwpSerial, TaskSerial};
use super::state::SuperTrace;
use super::stored::{Bytes, SHAPE, Stored};
use super::unseen::AllUnseen;
use crate::merge::event::EventRef;
use crate::merge::messages::Merge;
use crate::merge::slices;
use crate::open::recording::Recording;
use crate::time::range::TimeRange;
use std::hash::{DefaultHasher, Hash, Hasher};
use tracewing_units::{Tid, Timestamp};

/// Bytes of a recording between two checkpoints, at least: they are read in a fraction of a second.
const LEAST: u64 = 64 << 20;
/// How many checkpoints a recording has, at most.
const MOST: u64 = 64;

/// Of all that was read, checkpoints take one of so many bytes, at most.
const SHARE: u64 = 50;

/// Where the merge of a recording pauses.
#[derive(Debug, Default, Clone)]
pub struct Pauses {
    /// Of all that was read, checkpoints may take one of so many bytes; 0 if any number.
    pub share: u64,
    /// Up to when all has come, each; the next one is the last.
    to_come: Vec<Timestamp>,
    /// What has come.
    counted: Counted,
}

impl Pauses {
    /// None.
    pub fn none() -> Self {
        Self::default()
    }

    /// Those at which checkpoints of a recording are made: none if it is small, or can only be read from its
    /// beginning.
    pub fn of(recording: &Recording) -> Self {
        let cuts = slices::cuts(recording, (recording.bytes() / MOST).max(LEAST));
        Self { share: SHARE, ..Self::at(cuts.into_iter().map(Timestamp::previous).collect()) }
    }

    /// After everything up to each of these times, however much they take.
    pub fn at(mut times: Vec<Timestamp>) -> Self {
        times.sort_unstable();
        times.dedup();
        times.reverse();
        Self { share: 0, to_come: times, counted: Counted::default() }
    }

    /// The merge of a recording, up to the first of them.
    pub fn merge<'r>(&self, recording: &'r Recording) -> Merge<'r> {
        Merge::new(recording, TimeRange::ALL).pause_at(self.next())
    }

    /// Takes the next event of the merge, for the pauses to come.
    #[inline]
    pub fn event(&mut self, event: &EventRef<'_>) {
        if !self.are_over() {
            self.counted.count(event);
        }
    }

    /// Continues a merge that has nothing more to give. `None` if there is no pause to come: then all has
    /// come. `adapter` is what has made activities of its events.
    pub fn pass(&mut self, recording: &Recording, merge: &mut Merge<'_>, adapter: &Adapter) -> Option<Pause> {
        let until = self.to_come.pop()?;
        let stands = (until < Timestamp::MAX).then(|| merge.handoff()).flatten();
        let again = || Merge::continued(recording, until.next(), merge.last_ns()).handoff();
        let stop = stands.filter(|stands| Some(stands) == again().as_ref()).map(|stands| {
            let mut names = Vec::new();
            adapter.put(&mut names);
            let (last, bytes) = (merge.last_ns(), merge.bytes());
            let counted = self.counted.names().to_vec();
            Stop { last, handoff: stands.digest(), bytes, adapter: names, counted }
        });
        merge.advance_to(self.next());
        Some(Pause { until, stop })
    }

    /// Whether none is to come.
    pub fn are_over(&self) -> bool {
        self.to_come.is_empty()
    }

    fn next(&self) -> Timestamp {
        self.to_come.last().copied().unwrap_or(Timestamp::MAX)
    }
}

/// A pause of a merge.
#[derive(Debug)]
pub struct Pause {
    until: Timestamp,
    /// `None` if no other merge can continue here.
    stop: Option<Stop>,
}

/// Where a merge has paused that can be continued from there.
#[derive(Debug)]
struct Stop {
    /// When the last message was.
    last: Timestamp,
    /// Where all streams stand.
    handoff: u64,
    /// Bytes of the packets that were begun.
    bytes: u64,
    adapter: Vec<u8>,
    counted: Vec<(String, u64)>,
}

impl Pause {
    /// Up to when all has come.
    pub fn until(&self) -> Timestamp {
        self.until
    }

    /// Bytes of the packets that were begun; `None` if no checkpoint can be made.
    pub fn bytes(&self) -> Option<u64> {
        self.stop.as_ref().map(|stop| stop.bytes)
    }

    /// The names of all events so far, each with their number, for [`Known::counted`]; `None` if no
    /// checkpoint can be made.
    pub fn counted(&self) -> Option<Vec<(String, u64)>> {
        self.stop.as_ref().map(|stop| stop.counted.clone())
    }

    /// The time up to which all has come, and the checkpoint; `None` if a reader cannot continue there.
    pub fn checkpoint(
        &self,
        recording: &Recording,
        follower: &Follower,
        known: &Known,
    ) -> Option<(Timestamp, Vec<u8>)> {
        let stop = self.stop.as_ref()?;
        let mut out = Vec::with_capacity(1 << 16);
        version(recording).put(&mut out);
        for time in [self.until, stop.last] {
            time.put(&mut out);
        }
        stop.handoff.put(&mut out);
        stop.bytes.put(&mut out);
        known.put(&mut out);
        out.extend_from_slice(&stop.adapter);
        follower.unseen.to_come.len().put(&mut out);
        follower.state.put(&mut out);
        Some((self.until, out))
    }
}

/// Where reading begins.
#[derive(Debug)]
pub struct Checkpoint<'r> {
    /// Up to then, all has come.
    pub until: Timestamp,
    /// Gives what follows.
    pub merge: Merge<'r>,
    /// The state.
    pub follower: Follower,
    /// What else was known.
    pub known: Known,
    /// Bytes of the packets that were begun before.
    pub bytes: u64,
}

impl<'r> Checkpoint<'r> {
    /// The last one of a recording before a time; `None` if there is none that is right.
    pub fn before(recording: &'r Recording, time: Timestamp) -> Option<Self> {
        Self::with(recording, time, |_| true)
    }

    /// The last one before a time at which all was known that is needed: of others, the state is not read.
    /// `None` if there is none, or one that is not right comes first.
    pub fn with(
        recording: &'r Recording,
        mut time: Timestamp,
        has_all: impl Fn(&Known) -> bool,
    ) -> Option<Self> {
        let version = version(recording);
        loop {
            let bytes = recording.checkpoint_before(time)?;
            let mut bytes = Bytes::new(&bytes);
            let head = Head::take(version, &mut bytes).filter(|head| head.until < time)?;
            if has_all(&head.known) {
                return Self::of(recording, head, bytes);
            }
            time = head.until;
        }
    }

    /// The one with this head, and with the state in these bytes.
    fn of(recording: &'r Recording, head: Head, mut bytes: Bytes<'_>) -> Option<Self> {
        let Head { until, last, handoff, read, known } = head;
        let adapter = Adapter::take(&mut bytes)?;
        let mut unseen = AllUnseen::of(recording);
        unseen.to_come.truncate(usize::take(&mut bytes)?);
        let state = SuperTrace::stored(&mut bytes, Coverage::of(recording))?;
        let has_streams = known.losses.iter().all(|(_, stream)| *stream < recording.streams().len());
        // No more threads can have been than events, which have a byte at least.
        let serials = state.serials.max(state.programs.serials) as u64;
        if !bytes.are_over() || !has_streams || serials > recording.bytes() {
            return None;
        }
        let merge = Merge::continued(recording, until.next(), last);
        let is_there = merge.handoff().is_some_and(|stands| stands.digest() == handoff);
        let follower = Follower { adapter, state, unseen };
        is_there.then_some(Self { until, merge, follower, known, bytes: read })
    }
}

/// What a checkpoint has before the state.
#[derive(Debug)]
struct Head {
    until: Timestamp,
    /// See [`Stop`].
    last: Timestamp,
    handoff: u64,
    read: u64,
    known: Known,
}

impl Head {
    /// The one at the beginning of a checkpoint; `None` if that is not of this version.
    fn take(version: u64, bytes: &mut Bytes<'_>) -> Option<Self> {
        if u64::take(bytes)? != version {
            return None;
        }
        Some(Self {
            until: Timestamp::take(bytes)?,
            last: Timestamp::take(bytes)?,
            handoff: u64::take(bytes)?,
            read: u64::take(bytes)?,
            known: Known::take(bytes)?,
        })
    }
}

/// A number that differs where checkpoints of a recording have other bytes: by the version of this program.
pub fn checkpoint_version() -> u64 {
    let mut hasher = DefaultHasher::new();
    (SHAPE, env!("CARGO_PKG_VERSION")).hash(&mut hasher);
    hasher.finish()
}

/// A number that differs where the bytes of a checkpoint mean something else: by the version of this program,
/// and by the order of the recording's streams.
fn version(recording: &Recording) -> u64 {
    let mut hasher = DefaultHasher::new();
    checkpoint_version().hash(&mut hasher);
    for stream in recording.streams() {
        let absolute = |path: &std::path::Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        (stream.trace_index(), stream.class_id(), stream.id()).hash(&mut hasher);
        stream.files().map(absolute).for_each(|path| path.hash(&mut hasher));
    }
    hasher.finish()
}

/// What is known of classes is found out anew: it gives the same names the same numbers.
impl Stored for Adapter {
    fn put(&self, out: &mut Vec<u8>) {
        let Self { classes: _, names, numbers: _, general, introduced } = self;
        names.put(out);
        (general.softirq, general.interrupt).put(out);
        let mut introduced: Vec<(usize, Tid)> = introduced.iter().copied().collect();
        introduced.sort_unstable();
        introduced.put(out);
    }

    fn take(bytes: &mut Bytes<'_>) -> Option<Self> {
        let names = Vec::<String>::take(bytes)?;
        let (softirq, interrupt) = Stored::take(bytes)?;
        let introduced = Vec::take(bytes)?.into_iter().collect();
        let mut adapter =
            Adapter { introduced, general: General { softirq, interrupt }, ..Adapter::default() };
        let mut known = names.iter().map(|name| adapter.number(name).0);
        let are_different = known.by_ref().zip(0..).all(|(number, place)| number == place);
        (are_different && names.len() <= NAMES).then_some(adapter)
    }
}

impl SuperTrace {
    fn put(&self, out: &mut Vec<u8>) {
        #[rustfmt::skip] // A list, which is complete.
        let Self {
            lwps, serials, programs, dumped, headless, ended, cpus, begin, now, latest, is_disordered, blind_until,
            partial, coverage: _, root, follows, without_calls, died_unseen,
        } = self;
        lwps.put(out);
        serials.put(out);
        programs.put(out);
        dumped.put(out);
        headless.put(out);
        ended.put(out);
        cpus.put(out);
        begin.put(out);
        now.put(out);
        latest.put(out);
        is_disordered.put(out);
        blind_until.put(out);
        partial.put(out);
        root.put(out);
        follows.put(out);
        without_calls.put(out);
        died_unseen.put(out);
    }

    /// The state of a recording that can know so much.
    fn stored(bytes: &mut Bytes<'_>, coverage: Coverage) -> Option<Self> {
        let this = Self {
            lwps: Stored::take(bytes)?,
            serials: Stored::take(bytes)?,
            programs: Programs::stored(bytes, &coverage)?,
            dumped: Stored::take(bytes)?,
            headless: Stored::take(bytes)?,
            ended: Stored::take(bytes)?,
            cpus: Stored::take(bytes)?,
            begin: Stored::take(bytes)?,
            now: Stored::take(bytes)?,
            latest: Stored::take(bytes)?,
            is_disordered: Stored::take(bytes)?,
            blind_until: Stored::take(bytes)?,
            partial: Stored::take(bytes)?,
            coverage,
            root: Stored::take(bytes)?,
            follows: Stored::take(bytes)?,
            without_calls: Stored::take(bytes)?,
            died_unseen: Stored::take(bytes)?,
        };
        this.has_counted().then_some(this)
    }

    /// Whether all serial numbers are below those of the next ones.
    fn has_counted(&self) -> bool {
        let has_lwp = |lwp: LwpSerial| lwp.0 < self.serials;
        let has_task = |task: TaskSerial| task.0 < self.programs.serials;
        let has_waker = |by: &Waker| by.lwp.is_none_or(has_lwp) && by.user_thread_serial.is_none_or(has_task);
        let raisers = self.cpus.values().flat_map(|cpu| cpu.raised.iter().filter_map(|(_, by)| by.as_ref()));
        let running = self.cpus.values().filter_map(|cpu| cpu.softirq.as_ref());
        self.lwps.values().all(|lwp| has_lwp(lwp.serial))
            && self.programs.programs.values().all(|all| all.values().all(|task| has_task(task.serial)))
            && raisers.chain(running.map(|(_, by)| by)).all(has_waker)
    }
}

impl Programs {
    fn put(&self, out: &mut Vec<u8>) {
        // The others follow from what the recording can know.
        let Self { programs, origins, serials, blind_until, unseen: _, wakeless: _, chosen: _ } = self;
        programs.put(out);
        origins.put(out);
        serials.put(out);
        blind_until.put(out);
    }

    fn stored(bytes: &mut Bytes<'_>, coverage: &Coverage) -> Option<Self> {
        Some(Self {
            programs: Stored::take(bytes)?,
            origins: Stored::take(bytes)?,
            serials: Stored::take(bytes)?,
            blind_until: Stored::take(bytes)?,
            ..Self::new(coverage)
        })
    }
}
