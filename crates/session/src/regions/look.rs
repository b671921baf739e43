//! Looks at regions when they are due: writes what they hold, and retires those without writers.

use std::collections::BTreeSet;
use std::mem;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tracewing_consumer::archive::Archive;
use tracewing_consumer::drain::Drain;
use tracewing_consumer::names::{Announced, Names};
use tracewing_consumer::trace::{NextTrace, UserTrace};
use tracewing_units::{Cycles, Pid, Tid};

use super::{Damages, Key, Living, MANY, Origin, Regions};
use crate::context;
use crate::credentials::Peer;
use crate::ended::Ended;

/// Regions that are looked at before other work has its turn.
const MOST_AT_ONCE: usize = 256;
/// Lines about damaged buffers that are kept until they are noted.
const MOST_DAMAGES: usize = 256;
/// Time between two questions whether a region has writers, at first and at most.
const FIRST_QUESTION: Duration = Duration::from_millis(1);
const LAST_QUESTION: Duration = Duration::from_secs(2);

impl Regions {
    /// Called when a connection of a process has ended: the process is dead, has executed another file, or
    /// has closed descriptors without knowing them.
    pub(crate) fn left(&mut self, pid: Pid) {
        if pid != MANY {
            self.ask_for_writers(pid, |_| true);
        }
    }

    /// Soon asks whether regions of a process have writers.
    pub(super) fn ask_for_writers(&mut self, pid: Pid, which: impl Fn(&Living) -> bool) {
        let now = Instant::now();
        for (key, living) in self.living.range_mut((pid, 0)..=(pid, u64::MAX)) {
            if which(living) {
                living.question = Some(Duration::ZERO);
                living.change_due(*key, now, &mut self.agenda);
            }
        }
    }

    /// Looks at a region at once: what its packets waited for is known now.
    pub(crate) fn hurry(&mut self, origin: Origin) {
        if let Some(living) = self.living.get_mut(&origin.key) {
            living.change_due(origin.key, Instant::now(), &mut self.agenda);
        }
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
            // Classes found in its last contents are decided before the region is removed.
            let is_waited_for = self.keep_found(living.peer, key);
            if ended && result.is_ok() && !is_waited_for && self.can_retire(&living.drain) {
                match living.holder {
                    Some(holder) => self.quota.give_back(holder, 1),
                    None => self.quota.give_back_for_child(living.peer),
                }
                self.retire(living.drain, living.peer)?;
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

    /// Closes the files of the trace with what the regions hold by now; from now on, events go to the next
    /// one. What the disk has no room for yet, or what waits for the description of its class, goes there,
    /// too.
    ///
    /// # Errors
    /// The trace cannot be written any more; then it is not closed.
    pub(crate) fn rotate(&mut self, next: NextTrace) -> Result<Archive, tracewing_consumer::Error> {
        let keys: Vec<Key> = self.living.keys().copied().collect();
        for key in keys {
            let (Some(trace), Some(living)) = (&mut self.trace, self.living.get_mut(&key)) else { continue };
            living.drain.end_part(trace, &self.clock)?;
            let peer = living.peer;
            self.keep_found(peer, key);
        }
        self.report_contexts()?;
        let Some(trace) = &mut self.trace else { return Ok(Archive::default()) };
        let mut archive = trace.rotate(next);
        self.living.values_mut().for_each(|living| living.drain.rotate(&mut archive));
        let Ended { losses, overwritten, .. } = &mut self.ended;
        archive.add_ranges(mem::take(losses), mem::take(overwritten));
        Ok(archive)
    }

    /// Threads that have announced themselves since the last call.
    pub(super) fn take_announced(&self) -> Vec<Announced> {
        let names = self.trace.as_ref().and_then(UserTrace::names);
        names.map(Names::take_announced).unwrap_or_default()
    }

    /// Writes the context of threads that is new, as far as the queue to the disk has room for it.
    ///
    /// # Errors
    /// The trace cannot be written any more.
    pub(crate) fn report_contexts(&mut self) -> Result<(), tracewing_consumer::Error> {
        let announced = if self.contexts.is_some() { self.take_announced() } else { return Ok(()) };
        let Some(contexts) = &mut self.contexts else { return Ok(()) };
        contexts.announced(announced);
        let Some(trace) = &mut self.trace else {
            contexts.written(); // a flight recorder's snapshots take what is known
            return Ok(());
        };
        let (id, pending) = contexts.pending();
        if !pending.is_empty() && trace.report(context::STREAM, id, self.clock.now(), pending)? {
            contexts.written();
        }
        Ok(())
    }

    /// Writes the recorder's own events about the state at the beginning of an archive: as
    /// [`UserTrace::write_state`].
    ///
    /// # Errors
    /// As there.
    pub(crate) fn write_state(
        &mut self,
        name: &str,
        id: u16,
        at: Cycles,
        events: impl Iterator<Item = (Tid, Vec<u8>)>,
    ) -> Result<(), tracewing_consumer::Error> {
        self.trace.as_mut().map_or(Ok(()), |trace| trace.write_state(name, id, at, events))
    }

    /// Writes the context of threads with which an archive begins.
    ///
    /// # Errors
    /// As [`Regions::write_state`].
    pub(crate) fn write_contexts(&mut self, at: Cycles) -> Result<(), tracewing_consumer::Error> {
        let (Some(contexts), Some(trace)) = (&self.contexts, &mut self.trace) else { return Ok(()) };
        let (id, events) = contexts.state();
        trace.write_state(context::STATE_STREAM, id, at, events)
    }

    /// Bytes that were given to the streams of the current archive.
    pub(crate) fn given(&self) -> u64 {
        self.trace.as_ref().map_or(0, UserTrace::given)
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
        living.fullest = found.fullest;
        living.pace.looked(begin, Instant::now(), &found);
        Ok(())
    }

    /// Whether what a region holds need not wait for the disk.
    fn can_retire(&self, drain: &Drain) -> bool {
        self.trace.as_ref().is_none_or(|trace| trace.has_room(drain.waiting()))
    }

    /// No process can write to a region any more: writes the rest and lets the memory go. A flight recorder
    /// keeps what was in it, since the next snapshot may be about that very program.
    fn retire(&mut self, mut drain: Drain, peer: Peer) -> Result<(), tracewing_consumer::Error> {
        let Some(trace) = &mut self.trace else {
            drain.watch(&self.clock);
            self.end(&drain, peer);
            if drain.is_untouched() {
                self.maker.let_go(drain.name());
                return Ok(());
            }
            for given_up in self.past.keep(drain, &self.firsts, self.living.len()) {
                self.maker.let_go(&given_up);
            }
            return Ok(());
        };
        let result = drain.retire(trace, &self.clock);
        if result.is_ok() {
            self.maker.let_go(drain.name());
        }
        self.end(&drain, peer);
        if let Some(trace) = &mut self.trace {
            drain.give_back(trace);
        }
        result
    }

    /// Keeps the totals of a region that is finished, and what was found damaged in it. It was made for
    /// `peer`.
    fn end(&mut self, drain: &Drain, peer: Peer) {
        self.ended.take(drain);
        let Damages { lines, more } = &mut self.damages;
        for damage in drain.damages() {
            match lines.len() < MOST_DAMAGES {
                true => lines.push((peer, damage)),
                false => *more += 1,
            }
        }
    }

    /// Reports the end of the recording to all writers.
    pub(crate) fn close(&self) {
        self.living.values().for_each(|living| living.drain.close());
    }

    /// Closes all regions, and writes the rest of their contents, or counts it as lost if the trace cannot be
    /// written. Returns the totals.
    pub(crate) fn finish(&mut self, write: bool) -> (Ended, Result<(), tracewing_consumer::Error>) {
        self.close();
        self.agenda.clear();
        let mut result = Ok(());
        for Living { mut drain, peer, .. } in std::mem::take(&mut self.living).into_values() {
            match &mut self.trace {
                Some(trace) if write && result.is_ok() => result = drain.retire(trace, &self.clock),
                Some(_) => drain.abandon(&self.clock),
                None => drain.watch(&self.clock),
            }
            self.end(&drain, peer);
            if let Some(trace) = &mut self.trace {
                drain.give_back(trace);
            }
        }
        if write && result.is_ok() {
            if let (Some(trace), Some(contexts)) = (&self.trace, &self.contexts) {
                trace.wait_for_room(contexts.pending_bytes());
            }
            result = self.report_contexts();
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
}

impl Living {
    fn change_due(&mut self, key: Key, due: Instant, agenda: &mut BTreeSet<(Instant, Key)>) {
        agenda.remove(&(self.due, key));
        self.due = due;
        agenda.insert((due, key));
    }

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
