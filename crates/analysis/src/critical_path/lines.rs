//! Stores the states of LWPs and user threads, and their wakes, on a [`Tape`]. Memory grows with the number
//! of live threads.

use super::record::{Identity, Record, Stretch, UserDoing};
use super::tape::{Rewind, Tape};
use super::target::{Candidate, Candidates};
use super::{Followed, NoPath, Target};
use crate::analysis::{Analysis, Input};
use crate::serials::Serials;
use std::io::{self, Read, Seek, Write};
use tracewing_trace::super_trace::{Change, Doing, Fold, Lwp, LwpSerial, TaskSerial, UserThread, Waker};
use tracewing_units::Timestamp;

/// The analysis: takes down what all do, and gives the path at the end ([`CriticalPaths::path`]). It needs
/// the events of the path's time only.
#[derive(Debug)]
pub struct CriticalPaths<F> {
    tape: Tape<F>,
    lwps: Serials<LwpSerial, LiveLwp>,
    user_threads: Serials<TaskSerial, LiveThread>,
    candidates: Candidates,
    failed: Option<io::Error>,
}

/// The interval in which something is known of an LWP or a user thread.
#[derive(Debug, Default, Clone, Copy)]
struct Life(Option<Known>);

#[derive(Debug, Clone, Copy)]
struct Known {
    from: Timestamp,
    to: Timestamp,
    /// Begin of the last stored part. What is reported next matters from then on: it ends that part, or
    /// follows it.
    last: Timestamp,
}

impl Life {
    /// Extends it; returns the part of the interval that is after everything before, if any, and since when
    /// that matters.
    #[inline]
    fn add(&mut self, from: Timestamp, to: Timestamp) -> Option<(Timestamp, Timestamp, Timestamp)> {
        let known = self.0.map_or((from, from, from), |known| (known.from, from.max(known.to), known.last));
        let (first, from, since) = known;
        (from < to).then(|| {
            self.0 = Some(Known { from: first, to, last: from });
            (from, to, since)
        })
    }

    /// Since when something matters that happens at a time.
    #[inline]
    fn since(&self, at: Timestamp) -> Timestamp {
        self.0.map_or(at, |known| known.last.min(at))
    }

    /// From when to when it is known.
    fn ends(&self) -> Option<(Timestamp, Timestamp)> {
        self.0.map(|known| (known.from, known.to))
    }
}

#[derive(Debug, Default)]
struct LiveLwp {
    life: Life,
    /// Since when it is not reported for which user thread it works, and since when that matters.
    open: Option<(Timestamp, Timestamp)>,
}

#[derive(Debug, Default)]
struct LiveThread {
    life: Life,
    /// When it was created; `None` if that is unknown.
    created: Option<Timestamp>,
    /// The LWP that ran it last.
    lwp: Option<LwpSerial>,
}

impl<F: Read + Write + Seek> CriticalPaths<F> {
    /// An analysis that has seen nothing yet, with an empty file for what it cannot hold in memory: some ten
    /// bytes for each system call, switch, and wake.
    pub fn new(target: Target, file: F) -> Self {
        Self::of_tape(target, Tape::new(file))
    }

    /// The same with blocks of about so many bytes.
    #[cfg(test)]
    pub(crate) fn of_blocks(target: Target, file: F, block: usize) -> Self {
        Self::of_tape(target, Tape::of_blocks(file, block))
    }

    fn of_tape(target: Target, tape: Tape<F>) -> Self {
        CriticalPaths {
            tape,
            lwps: Serials::default(),
            user_threads: Serials::default(),
            candidates: Candidates::new(target),
            failed: None,
        }
    }

    /// The stored records, and the requested target.
    pub(super) fn finish(self) -> Result<(Rewind<F>, Candidate), NoPath> {
        match self.failed {
            Some(error) => Err(NoPath::Tape(error)),
            None => Ok((self.tape.rewind(), self.candidates.choose()?)),
        }
    }

    #[inline]
    fn put(&mut self, record: &Record, since: Timestamp) {
        if self.failed.is_none()
            && let Err(error) = self.tape.put(record, since)
        {
            self.failed = Some(error);
        }
    }
}

impl<F: Read + Write + Seek> Analysis for CriticalPaths<F> {
    const EVENTS: bool = false;
    const CONTINUES: bool = true;

    fn is_done(&self) -> bool {
        self.failed.is_some()
    }

    fn input(&mut self, _: Input<'_>) {}
}

impl<F: Read + Write + Seek> Fold for CriticalPaths<F> {
    #[inline(always)]
    fn change(&mut self, change: Change<'_>) {
        match change {
            Change::LwpDid { lwp, doing, from, to } => self.lwp(lwp, doing, from, to),
            Change::LwpRan { lwp, thread } => self.ran(lwp, thread),
            Change::UserThreadDid { thread, doing, from, to } => self.user_thread(thread, doing, from, to),
            Change::LwpWoken { lwp, by, at } => self.lwp_woken(lwp, by, at),
            Change::UserThreadWoken { thread, by, at } => self.user_thread_woken(thread, by, at),
            Change::UserThreadCreated { thread, by, at } => self.user_thread_created(thread, by, at),
            Change::UserThreadStops { thread, lwp, .. } => self.user_thread_stops(thread, lwp),
            Change::LwpEnds { lwp } => self.lwp_ends(lwp),
            Change::UserThreadEnds { thread } => self.user_thread_ends(thread),
            _ => {}
        }
    }
}

impl<F: Read + Write + Seek> CriticalPaths<F> {
    #[inline]
    fn lwp(&mut self, lwp: &Lwp, doing: Doing, from: Timestamp, to: Timestamp) {
        let live = self.lwps.at(lwp.serial);
        let first = live.life.0.is_none();
        if let Some((from, to, since)) = live.life.add(from, to) {
            live.open.get_or_insert((from, since));
            self.put(&Record::Lwp { lwp: lwp.serial, first, did: Stretch { from, to, doing } }, since);
        }
    }

    fn ran(&mut self, lwp: &Lwp, thread: Option<&UserThread>) {
        let live = self.lwps.at(lwp.serial);
        let (Some((from, since)), Some((_, to))) = (live.open.take(), live.life.ends()) else { return };
        let ran = thread.and_then(|thread| {
            let live = self.user_threads.at(thread.serial);
            live.lwp = Some(lwp.serial);
            live.life.add(from, to)
        });
        let (from, to, of_thread) = ran.unwrap_or((to, to, to));
        let thread = thread.map(|thread| thread.serial);
        self.put(&Record::Ran { lwp: lwp.serial, thread, from, to }, since.min(of_thread));
    }

    fn user_thread(&mut self, thread: &UserThread, doing: Doing, from: Timestamp, to: Timestamp) {
        // While an LWP runs it, its state is reported as that LWP's.
        if doing == Doing::Unknown {
            return;
        }
        let live = self.user_threads.at(thread.serial);
        let doing = match (doing, live.lwp) {
            (Doing::Nested, Some(lwp)) => UserDoing::Nested(LwpSerial(lwp.0)),
            (Doing::Nested, None) => return,
            _ => UserDoing::Off(doing),
        };
        if let Some((from, to, since)) = live.life.add(from, to) {
            self.put(&Record::UserThread { thread: thread.serial, did: Stretch { from, to, doing } }, since);
        }
    }

    fn lwp_woken(&mut self, lwp: &Lwp, by: &Waker, at: Timestamp) {
        let since = self.lwps.at(lwp.serial).life.since(at);
        self.put(&Record::LwpWoken { lwp: lwp.serial, at, by: by.into() }, since);
    }

    fn user_thread_woken(&mut self, thread: &UserThread, by: &Waker, at: Timestamp) {
        let since = self.user_threads.at(thread.serial).life.since(at);
        self.put(&Record::UserThreadWoken { thread: thread.serial, at, by: by.into() }, since);
    }

    fn user_thread_created(&mut self, thread: &UserThread, by: &Waker, at: Timestamp) {
        self.user_threads.at(thread.serial).created = Some(at);
        self.put(&Record::UserThreadCreated { thread: thread.serial, at, by: by.into() }, at);
    }

    fn user_thread_stops(&mut self, thread: &UserThread, lwp: &Lwp) {
        self.user_threads.at(thread.serial).lwp = Some(lwp.serial);
    }

    fn lwp_ends(&mut self, lwp: &Lwp) {
        let identity = Identity {
            process: lwp.process,
            number: lwp.tid.0.unsigned_abs().into(),
            name: lwp.name.clone(),
        };
        if let Some(life) = self.lwps.take(lwp.serial).life.ends() {
            self.candidates.ends(Followed::Lwp(lwp.serial, None), &identity, life);
            let ends = Record::LwpEnds { lwp: lwp.serial, begin: life.0, identity: identity.into() };
            self.put(&ends, life.0);
        }
    }

    fn user_thread_ends(&mut self, thread: &UserThread) {
        let identity = Identity { process: thread.process, number: thread.id.0, name: thread.name.clone() };
        let LiveThread { life, created, .. } = self.user_threads.take(thread.serial);
        if let Some(life) = life.ends() {
            self.candidates.ends(Followed::UserThread(thread.serial), &identity, life);
            // It may have done something before it is known what.
            let begin = created.unwrap_or(Timestamp::MIN);
            let thread = thread.serial;
            self.put(&Record::UserThreadEnds { thread, begin, identity: identity.into() }, begin);
        }
    }
}
