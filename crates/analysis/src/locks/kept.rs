//! What an analysis of locks knows of earlier events, as a part of a checkpoint.
//!
//! It is that of a run that gets all events, whose lines have no times yet. A run with a filter gets other
//! ones: whether a name or a condition lets an event pass is decided at that event, so that of what is open
//! at a checkpoint, it may know less, or, without an end, more.

use std::collections::HashMap;

use tracewing_trace::super_trace::{Bytes, Change, Fold, Located, Part, Stored, shape};

use super::account::{Bins, Kind, OF_KINDS, Party};
use super::owners::Owners;
use super::table::Group;
use super::totals::Totals;
use super::uses::LockRead;
use super::{Locks, owners, places, thread, tickets};
use crate::analysis::{Analysis, Input};
use crate::names::Names;
use crate::stored::{PartKind, put_each, take_each};
use crate::{images, programs};

/// Changes with what is stored.
const SHAPE: u64 = thread::OF_THREAD
    ^ thread::OF_HELD
    ^ thread::OF_OUTCOME
    ^ owners::SHAPE
    ^ tickets::SHAPE
    ^ places::SHAPE
    ^ images::SHAPE
    ^ programs::SHAPE
    ^ OF_KINDS
    ^ shape(BY_HAND);

/// What is written and read field by field here, and by which numbers variants are known.
const BY_HAND: &str = "Locks programs threads silent tickets kernel owners have_held blind names task_names places \
    shadowed; Party Thread Task Place; GivenBack Ended Inner Unmatched";

/// A call chain takes as much as so many other things.
const CHAIN: usize = 16;

/// Follows locks for checkpoints.
#[derive(Debug)]
pub(crate) struct EarlierLocks {
    locks: Locks,
    names: Names,
}

impl EarlierLocks {
    /// Changes with what is stored of it.
    pub(crate) const SHAPE: u64 = SHAPE;

    /// One that has seen nothing yet.
    pub(crate) fn new() -> Self {
        // For lines of parties, the processes are known of those that wait for locks of the kernel.
        Self { locks: Locks::new(Group::Task, Bins::default()), names: Names::default() }
    }

    /// Takes the next event, of which this was read.
    #[inline]
    pub(crate) fn learn(&mut self, read: Option<&LockRead>, at: &Located<'_>) {
        let Self { locks, names } = self;
        if locks.follows(at)
            && let Some(LockRead(level, event)) = read
        {
            locks.located(*level, event.clone(), at, |name| names.get(name).to_owned());
        }
    }

    /// Takes a change, of which only ends matter, as in a run whose range has not begun.
    #[inline]
    pub(crate) fn change(&mut self, change: Change<'_>) {
        if let Change::LwpEnds { .. } | Change::UserThreadEnds { .. } = change {
            self.locks.change(change);
        }
    }

    /// Takes what is neither.
    pub(crate) fn input(&mut self, input: Input<'_>) {
        match input {
            Input::Name { name, text } => self.names.learn(name, text),
            // Before a range, the order of events is not doubted.
            Input::Lost(lost) if lost.is_of_order => {}
            Input::Dumped { .. } | Input::Lost(_) | Input::LossOver { .. } => self.locks.input(input),
            _ => {}
        }
    }

    /// Whether more things are known than so many. Locks that nothing holds are forgotten before, and half
    /// of it is too much then: to look for them again and again would take long.
    pub(crate) fn exceeds(&mut self, most: usize) -> bool {
        self.count() > most && {
            self.locks.totals.forget_free();
            self.count() > most / 2
        }
    }

    /// How many things are known.
    pub(crate) fn count(&self) -> usize {
        #[rustfmt::skip] // A list.
        let Locks {
            programs, threads, silent, tickets, totals, names, task_names, places, shadowed, ..
        } = &self.locks;
        let of_threads = [threads.len(), silent.len(), names.len(), task_names.len()];
        let of_locks = [totals.owners.len(), tickets.count(), places.count(CHAIN), shadowed.len()];
        of_threads.iter().chain(&of_locks).sum::<usize>() + programs.count()
    }

    /// As a part of a checkpoint.
    pub(crate) fn part(&self) -> Part {
        PartKind::Locks.part(SHAPE, &self.locks)
    }
}

impl Locks {
    /// Whether what was known at a checkpoint is there.
    pub(super) fn has_part(parts: &[Part]) -> bool {
        PartKind::Locks.is_in(SHAPE, parts)
    }

    /// Takes what was known at a checkpoint; false if that is not there.
    pub(super) fn take_part(&mut self, parts: &[Part]) -> bool {
        let Some(mut found) = PartKind::Locks.take::<Self>(SHAPE, parts) else { return false };
        let holds_too_much = found.threads.values().any(thread::Thread::holds_too_much);
        if holds_too_much || found.totals.owners.values().any(Owners::are_too_many) {
            return false;
        }
        if !self.totals.is_by_party() {
            found.threads.values_mut().for_each(thread::Thread::forget_process_of_kernels);
        }
        let of = &mut found.totals;
        self.totals.owners = std::mem::take(&mut of.owners);
        (self.totals.have_held, self.totals.blind) = (of.have_held, of.blind);
        std::mem::swap(&mut self.totals, &mut found.totals);
        std::mem::swap(&mut self.reader, &mut found.reader);
        *self = found;
        true
    }
}

/// Without what is counted.
impl Stored for Locks {
    fn put(&self, out: &mut Vec<u8>) {
        #[rustfmt::skip] // A list, which is complete.
        let Self {
            reader: _, programs, threads, dead: _, silent, tickets, kernel, totals, names, task_names, places,
            shadowed, strangers: _,
        } = self;
        let Totals { owners, have_held, blind, .. } = totals;
        let held = owners.iter().filter(|(_, owners)| !owners.is_empty());
        let owners = &held.map(|(lock, owners)| (*lock, owners.clone())).collect::<HashMap<_, _>>();
        put_each!(out: programs threads silent tickets kernel owners have_held blind);
        put_each!(out: names task_names places shadowed);
    }

    fn take(bytes: &mut Bytes<'_>) -> Option<Self> {
        let mut this = Self::new(Group::default(), Bins::default());
        #[rustfmt::skip] // A list.
        let Self {
            programs, threads, silent, tickets, kernel, totals, names, task_names, places, shadowed, ..
        } = &mut this;
        let Totals { owners, have_held, blind, .. } = totals;
        take_each!(bytes: programs threads silent tickets kernel owners have_held blind);
        take_each!(bytes: names task_names places shadowed);
        Some(this)
    }
}

impl Stored for Kind {
    fn put(&self, out: &mut Vec<u8>) {
        (*self as u8).put(out);
    }

    fn take(bytes: &mut Bytes<'_>) -> Option<Self> {
        Self::of_number(u8::take(bytes)?)
    }
}

impl Stored for Party {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Thread(tid) => (0_u8, *tid).put(out),
            Self::Task(process, task) => (1_u8, *process, *task).put(out),
            Self::Place(process, caller) => (2_u8, *process, *caller).put(out),
        }
    }

    fn take(bytes: &mut Bytes<'_>) -> Option<Self> {
        Some(match u8::take(bytes)? {
            0 => Self::Thread(Stored::take(bytes)?),
            1 => Self::Task(Stored::take(bytes)?, Stored::take(bytes)?),
            2 => Self::Place(Stored::take(bytes)?, Stored::take(bytes)?),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::event::LockEvent;
    use super::*;
    use crate::locks::owners::HOLDERS;
    use crate::locks::thread::Hold;
    use tracewing_units::{Caller, Chain, LockAddress, Pid, Task, Ticket, Tid, Timestamp};

    /// One that has seen so many locks that are free, and so many that are held.
    fn seen(free: u64, held: u64) -> EarlierLocks {
        let mut earlier = EarlierLocks::new();
        for lock in 0..free + held {
            let owners = earlier.locks.totals.owners.entry((None, LockAddress(lock))).or_default();
            if lock >= free {
                owners.takes(Party::Thread(Tid(1)), Hold::First);
            }
        }
        earlier
    }

    #[test]
    fn locks_that_nothing_holds_are_forgotten_where_there_are_many() {
        let mut few = seen(99, 1);
        assert!(!few.exceeds(100) && few.count() == 100);
        assert!(!few.exceeds(99) && few.count() == 1);
        assert!(seen(51, 50).exceeds(99), "soon it would be looked for them again");
        assert!(!seen(51, 49).exceeds(99) && seen(0, 100).exceeds(99));
    }

    #[test]
    fn what_has_no_bound_is_counted() {
        type Learn = fn(&mut Locks, u64);
        let mut earlier = EarlierLocks::new();
        let process = Some(Pid(1));
        let kinds: [(usize, Learn); 8] = [
            (1, |of, at| _ = of.threads.insert(Party::Thread(Tid(at as i32)), thread::Thread::default())),
            (1, |of, at| _ = of.names.insert(Tid(at as i32), "name".to_owned())),
            (1, |of, at| _ = of.task_names.insert((None, Task(at)), "name".to_owned())),
            (1, |of, at| of.tickets.suspends(Tid(at as i32), Timestamp::ORIGIN)),
            (1, |of, at| of.shadowed.push((None, "pthread_mutex_lock".to_owned(), at.to_string()))),
            (1, |of, at| of.places.learn_source(None, Caller(at), "a.rs".to_owned(), 1)),
            (CHAIN, |of, at| of.places.learn_chain(Chain(at), vec![1])),
            (2, |of, at| of.places.learn_image(Some(Pid(at as i32)), 1..2, 0, "a".to_owned())),
        ];
        for (many, learn) in kinds {
            let before = earlier.count();
            (1..=100).for_each(|at| learn(&mut earlier.locks, at));
            assert_eq!(earlier.count() - before, 100 * many);
        }
        // A request, its lock, the depth of its user thread, and the thread.
        let before = earlier.count();
        let by = thread::By { process, tid: Tid(1000), task: Task(1), ..thread::By::default() };
        let event =
            LockEvent::Acquired { lock: LockAddress(1), caller: Caller(1), kind: Kind::Mutex, waited: true };
        earlier.locks.tickets.event(Ticket(1), &event, by, Timestamp::ORIGIN, &mut |_, _| ());
        assert_eq!(earlier.count() - before, 4);
    }

    #[test]
    fn holders_that_are_not_followed_are_known_after_a_checkpoint_too() {
        let mut earlier = EarlierLocks::new();
        let event =
            LockEvent::Acquired { lock: LockAddress(1), caller: Caller(1), kind: Kind::Read, waited: false };
        for tid in (1..=HOLDERS as i32 + 1).map(Tid) {
            let by = thread::By { tid, ..thread::By::default() };
            earlier.locks.of_party(Party::Thread(tid), None, &event, by, Timestamp::ORIGIN);
        }
        let mut locks = Locks::new(Group::Lock, Bins::Log);
        assert!(locks.take_part(&[earlier.part()]));
        locks.begins(Timestamp::from_ns(1));
        assert_eq!(locks.totals.forgotten_holders, 1);
        assert_eq!(locks.holder((None, LockAddress(1))), Some(Party::Thread(Tid(2))));
    }

    #[test]
    fn a_checkpoint_with_more_holders_than_are_followed_is_not_used() {
        let is_used = |count| {
            let (mut earlier, mut bytes) = (EarlierLocks::new(), Vec::new());
            vec![(Party::Thread(Tid(1)), u64::MAX); count].put(&mut bytes);
            (u64::MAX, usize::MAX).put(&mut bytes);
            let mut owners = Owners::take(&mut Bytes::new(&bytes)).unwrap();
            (count <= HOLDERS).then(|| owners.takes(Party::Thread(Tid(2)), Hold::First));
            earlier.locks.totals.owners.insert((None, LockAddress(1)), owners);
            Locks::new(Group::Lock, Bins::Log).take_part(&[earlier.part()])
        };
        assert!(is_used(HOLDERS) && !is_used(HOLDERS + 1));
    }
}
