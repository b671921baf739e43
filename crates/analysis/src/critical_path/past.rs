//! The states of all threads at a time that moves backwards: a window over the tape, with an interval or two
//! of each live thread.

use super::Followed;
use super::record::{By, Identity, Record, Stretch, UserDoing};
use super::tape::Rewind;
use super::target::Candidate;
use crate::serials::Serials;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::io::{self, Read, Seek};
use tracewing_trace::super_trace::{Doing, LwpSerial, Mode, TaskSerial};
use tracewing_units::{Cpu, Timestamp};

/// What an LWP did, and for which user thread, by that one's serial number.
#[derive(Debug, Clone, Copy)]
pub(super) struct LwpDoing {
    pub doing: Doing,
    pub user_thread: Option<TaskSerial>,
}

/// The thread that had a CPU, in an interval.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slot {
    /// The LWP's serial number.
    pub lwp: LwpSerial,
    pub user_thread: Option<TaskSerial>,
    pub mode: Mode,
}

/// Intervals, the latest first: the one at the window's time, earlier ones that were reported no earlier, and
/// the one that follows.
#[derive(Debug)]
pub(super) struct Stretches<D>(VecDeque<Stretch<D>>);

impl<D> Default for Stretches<D> {
    fn default() -> Self {
        Stretches(VecDeque::new())
    }
}

impl<D: Copy> Stretches<D> {
    fn push(&mut self, stretch: Stretch<D>, time: Timestamp) {
        // Only late reports are out of order.
        match self.0.back() {
            Some(last) if last.from <= stretch.from => {
                let place = self.0.partition_point(|later| later.from > stretch.from);
                self.0.insert(place, stretch);
            }
            // Of the intervals after the window's time, only the next one is needed.
            Some(last) if self.0.len() == 1 && last.from >= time && stretch.from >= time => {
                self.0[0] = stretch;
            }
            _ => self.0.push_back(stretch),
        }
        self.forget(time);
    }

    fn forget(&mut self, time: Timestamp) {
        while self.0.get(1).is_some_and(|second| second.from >= time) {
            self.0.pop_front();
        }
    }

    /// The last that begins before the window's time, and the one that follows it.
    fn before(&mut self, time: Timestamp) -> Option<(Stretch<D>, Option<Stretch<D>>)> {
        self.forget(time);
        let place = self.0.partition_point(|stretch| stretch.from >= time);
        let next = place.checked_sub(1).and_then(|next| self.0.get(next)).copied();
        Some((*self.0.get(place)?, next))
    }
}

/// The life of an LWP or a user thread up to the window's time.
#[derive(Debug)]
pub(super) struct Line<D> {
    pub identity: Identity,
    stretches: Stretches<D>,
    /// Whether the first of its stretches has been read.
    pub has_begun: bool,
    /// When and by what it was made ready: the first time in what has been read.
    pub wake: Option<(Timestamp, By)>,
    pub created: Option<By>,
    /// For which user thread it did what comes next; of an LWP.
    carries: Option<TaskSerial>,
}

impl<D> Default for Line<D> {
    fn default() -> Self {
        Line {
            identity: Identity::default(),
            stretches: Stretches::default(),
            has_begun: false,
            wake: None,
            created: None,
            carries: None,
        }
    }
}

impl<D: Copy> Line<D> {
    /// The last stretch that begins before `time`, and the one that follows it.
    pub(super) fn before(&mut self, time: Timestamp) -> Option<(Stretch<D>, Option<Stretch<D>>)> {
        self.stretches.before(time)
    }

    /// What made it ready between two times, both included.
    pub(super) fn woken(&self, from: Timestamp, to: Timestamp) -> Option<By> {
        self.wake.filter(|(at, _)| (from..=to).contains(at)).map(|(_, by)| by)
    }
}

/// The states of all threads around one time, which moves backwards.
#[derive(Debug)]
pub(super) struct Past<F> {
    tape: Rewind<F>,
    /// By serial number.
    pub lwps: Serials<LwpSerial, Line<LwpDoing>>,
    pub user_threads: Serials<TaskSerial, Line<UserDoing>>,
    cpus: BTreeMap<Cpu, Stretches<Slot>>,
    /// LWPs and user threads that are unknown before a time.
    begun: BinaryHeap<(Timestamp, Serial)>,
    /// The latest report time of the unread records; `None` if all have been read.
    unread: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Serial {
    Lwp(LwpSerial),
    UserThread(TaskSerial),
}

impl<F: Read + Seek> Past<F> {
    /// A window at the end of the tape, with what is known of `target`.
    pub(super) fn new(tape: Rewind<F>, target: &Candidate) -> Self {
        let mut past = Past {
            tape,
            lwps: Serials::default(),
            user_threads: Serials::default(),
            cpus: BTreeMap::new(),
            begun: BinaryHeap::new(),
            unread: Some(Timestamp::MAX),
        };
        let identity = target.identity.clone();
        match target.followed {
            Followed::Lwp(lwp, _) => past.lwps.at(lwp).identity = identity,
            Followed::UserThread(thread) => past.user_threads.at(thread).identity = identity,
        }
        past
    }

    /// Moves back to a time: everything reported then or later that matters has been read. Calls `each` from
    /// time to time, which cancels it with false.
    ///
    /// # Errors
    /// The tape cannot be read, or `each` has cancelled it.
    pub(super) fn go_to(&mut self, time: Timestamp, each: &mut dyn FnMut() -> bool) -> io::Result<()> {
        const PERIOD: u64 = 1 << 16;
        for count in 1_u64.. {
            self.unread = self.tape.latest(time)?;
            if self.unread.is_none_or(|latest| latest < time) {
                break;
            }
            if let Some(record) = self.tape.take() {
                self.read(record, time);
            }
            if count % PERIOD == 0 && !each() {
                return Err(io::ErrorKind::Interrupted.into());
            }
        }
        while self.begun.peek().is_some_and(|(from, _)| *from > time) {
            let Some((_, serial)) = self.begun.pop() else { break };
            match serial {
                Serial::Lwp(lwp) => drop(self.lwps.take(lwp)),
                Serial::UserThread(thread) => drop(self.user_threads.take(thread)),
            }
        }
        Ok(())
    }

    /// For a thread that is unknown at the window's time: from when on the unread records cannot contain
    /// anything about it; `known` is the last time known from what has been read.
    pub(super) fn gap(&self, known: Option<Timestamp>) -> Timestamp {
        known.max(self.unread).unwrap_or(Timestamp::MIN)
    }

    /// The thread that had a CPU last before `time`.
    pub(super) fn on_cpu(&mut self, cpu: Cpu, time: Timestamp) -> Option<Stretch<Slot>> {
        Some(self.cpus.get_mut(&cpu)?.before(time)?.0)
    }

    /// The last record of a thread says since when it is known, and alone makes a line for it. Others of a
    /// thread without a line do not matter: it is only known after `time`, or after an earlier window.
    fn read(&mut self, record: Record, time: Timestamp) {
        match record {
            Record::Lwp { lwp, first, did: Stretch { from, to, doing } } => {
                let mut line = self.lwps.get_mut(lwp);
                let user_thread = line.as_ref().and_then(|line| line.carries);
                if let Some(line) = &mut line {
                    line.stretches.push(Stretch { from, to, doing: LwpDoing { doing, user_thread } }, time);
                    line.has_begun |= first;
                }
                // The thread that had it at the window's time is needed, not the next one.
                if let Doing::Running { cpu, mode } = doing
                    && from < time
                {
                    let doing = Slot { lwp, user_thread, mode };
                    self.cpus.entry(cpu).or_default().push(Stretch { from, to, doing }, time);
                }
            }
            Record::Ran { lwp, thread, from, to } => {
                if let Some(line) = self.lwps.get_mut(lwp) {
                    line.carries = thread;
                }
                if let Some(line) = thread.and_then(|thread| self.user_threads.get_mut(thread))
                    && from < to
                {
                    line.stretches.push(Stretch { from, to, doing: UserDoing::On(lwp) }, time);
                }
            }
            Record::UserThread { thread, did } => {
                if let Some(line) = self.user_threads.get_mut(thread) {
                    line.stretches.push(did, time);
                }
            }
            Record::LwpWoken { lwp, at, by } => {
                if let Some(line) = self.lwps.get_mut(lwp) {
                    line.wake = Some((at, by));
                }
            }
            Record::UserThreadWoken { thread, at, by } => {
                if let Some(line) = self.user_threads.get_mut(thread) {
                    line.wake = Some((at, by));
                }
            }
            Record::UserThreadCreated { thread, by, .. } => {
                if let Some(line) = self.user_threads.get_mut(thread) {
                    (line.created, line.has_begun) = (Some(by), true);
                }
            }
            Record::LwpEnds { lwp, begin, identity } if begin <= time => {
                self.lwps.at(lwp).identity = *identity;
                self.begun.push((begin, Serial::Lwp(lwp)));
            }
            Record::UserThreadEnds { thread, begin, identity } if begin <= time => {
                self.user_threads.at(thread).identity = *identity;
                self.begun.push((begin, Serial::UserThread(thread)));
            }
            Record::LwpEnds { .. } | Record::UserThreadEnds { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tape::Tape;
    use super::*;
    use std::io::Cursor;

    #[test]
    fn a_thread_that_only_lives_later_has_no_line() {
        let at = Timestamp::from_ns;
        let target = LwpSerial(0);
        // Each record is a block.
        let mut tape = Tape::of_blocks(Cursor::new(Vec::new()), 1);
        let mut put = |record: &Record, since: Timestamp| tape.put(record, since).unwrap();
        let did = |lwp, first, from, to| {
            let doing = Doing::Running { cpu: Cpu(0), mode: Mode::User };
            Record::Lwp { lwp, first, did: Stretch { from: at(from), to: at(to), doing } }
        };
        put(&did(target, true, 0, 100), at(0));
        for number in 1..1000_i64 {
            let (lwp, begin, identity) = (LwpSerial(number as usize), at(10 * number + 100), Box::default());
            // Nothing else in its block matters so early.
            put(&did(lwp, true, 10 * number + 100, 10 * number + 105), begin);
            // Something else does.
            put(&did(lwp, false, 10 * number + 105, 10 * number + 110), Timestamp::MIN);
            let since = if number % 2 == 0 { begin } else { Timestamp::MIN };
            put(&Record::LwpEnds { lwp, begin, identity }, since);
        }
        put(&Record::LwpEnds { lwp: target, begin: at(0), identity: Box::default() }, at(0));
        let identity = Identity::default();
        let target = Candidate { followed: Followed::Lwp(target, None), identity, life: (at(0), at(100)) };
        let mut past = Past::new(tape.rewind(), &target);
        past.go_to(at(50), &mut || true).unwrap();
        assert_eq!(past.lwps.count(), 1);
        assert_eq!(past.on_cpu(Cpu(0), at(50)).unwrap().doing.lwp, LwpSerial(0));
        assert_eq!(past.lwps.at(LwpSerial(0)).before(at(50)).unwrap().0.from, at(0));
    }

    #[test]
    fn a_thread_has_no_line_before_it_begins() {
        let at = Timestamp::from_ns;
        let mut tape = Tape::new(Cursor::new(Vec::new()));
        for number in 1..1000_i64 {
            let (lwp, begin) = (LwpSerial(number as usize), at(10 * number));
            let did = Stretch { from: begin, to: at(10_000), doing: Doing::Unknown };
            tape.put(&Record::Lwp { lwp, first: true, did }, begin).unwrap();
            tape.put(&Record::LwpEnds { lwp, begin, identity: Box::default() }, begin).unwrap();
        }
        let followed = Followed::Lwp(LwpSerial(1), None);
        let target = Candidate { followed, identity: Identity::default(), life: (at(10), at(10_000)) };
        let mut past = Past::new(tape.rewind(), &target);
        for (time, count) in [(10_000, 999), (5_000, 500), (100, 10), (10, 1)] {
            past.go_to(at(time), &mut || true).unwrap();
            assert_eq!(past.lwps.count(), count, "at {time} ns");
        }
    }
}
