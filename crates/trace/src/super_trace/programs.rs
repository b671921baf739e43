//! The user threads of all programs, and which LWP runs which of them.
//!
//! A user thread is known from its creation, or the first switch from or to it. Other events about an unknown
//! one may refer to one that has ended, and are ignored.

mod carrying;
mod ends;

use super::activity::{Name, SwitchCause, UserThreadKind};
use super::coverage::Coverage;
use super::doing::Waker;
use super::fold::{Change, Fold};
use super::lwp::{Carries, Lwp};
use super::numbers::Numbers;
use super::origins::Origins;
use super::serial::TaskSerial;
use super::user_thread::{Key, Owner, State, UserThread};
use tracewing_rules::ThreadPattern;
use tracewing_units::{Cpu, Origin, Task, Tid, Timestamp};

type Lwps = Numbers<Tid, Lwp>;
pub(super) type UserThreads = Numbers<Task, UserThread>;

#[derive(Debug, Clone)]
pub(super) struct Programs {
    /// By [`Key::owner`] and [`Key::id`].
    pub(super) programs: Numbers<Owner, UserThreads>,
    /// What user threads of an origin are called.
    pub(super) origins: Origins,
    /// How many user threads there have been.
    pub(super) serials: usize,
    /// Until then, switches may have been lost.
    pub(super) blind_until: Timestamp,
    /// No switch is recorded, or only some: a user thread that no LWP is known to run may run and end unseen.
    pub(super) unseen: bool,
    /// No wake is recorded.
    pub(super) wakeless: bool,
    /// The recording has the events of threads that match one pattern of each list; of all if there are no
    /// lists.
    pub(super) chosen: Vec<Vec<ThreadPattern>>,
}

impl Programs {
    /// None known so far, of a recording that can know so much.
    pub(super) fn new(coverage: &Coverage) -> Self {
        Self {
            programs: Numbers::default(),
            origins: Origins::default(),
            serials: 0,
            blind_until: coverage.begin.unwrap_or(Timestamp::MIN),
            unseen: !coverage.user_switches,
            wakeless: !coverage.user_wakes,
            chosen: coverage.of_user_threads.clone(),
        }
    }

    /// Whether events may be missing at this time.
    pub(super) fn is_blind(&self, now: Timestamp) -> bool {
        now < self.blind_until
    }

    pub(super) fn has(&self, owner: Owner) -> bool {
        self.programs.has(owner)
    }

    pub(super) fn get(&self, key: Key) -> Option<&UserThread> {
        self.programs.get(key.owner)?.get(key.id)
    }

    fn get_mut(&mut self, key: Key) -> Option<&mut UserThread> {
        self.programs.get_mut(key.owner)?.get_mut(key.id)
    }

    /// Handles an event of the LWP `tid`, which is known; `times` are now and when the recording began.
    pub(super) fn event(
        &mut self,
        kind: UserThreadKind<'_>,
        tid: Tid,
        cpu: Option<Cpu>,
        times: (Timestamp, Timestamp),
        lwps: &mut Lwps,
        fold: &mut impl Fold,
    ) {
        let now = times.0;
        if let UserThreadKind::Origin { origin, name, file, line } = kind {
            return self.origins.learn(origin, name, (file, line));
        }
        let Some(lwp) = lwps.get_mut(tid) else { return };
        let owner = owner(lwp);
        let key = |id| Key { owner, id };
        match kind {
            UserThreadKind::Origin { .. } => {}
            UserThreadKind::Create { thread, origin } => {
                let waker = self.waker(lwp, lwp.cpu().or(cpu));
                self.created(key(thread), origin, &waker, now, lwps, fold);
            }
            UserThreadKind::Existed { thread, origin } => self.existed(key(thread), origin, times.1, fold),
            UserThreadKind::Rename { thread, name } => self.renamed(key(thread), name, times.1, fold),
            // What has ended has, whatever is missing.
            UserThreadKind::Exit { thread }
            | UserThreadKind::Switch { prev: thread, cause: SwitchCause::Ended, .. }
                if self.is_blind(now) =>
            {
                self.end(key(thread), now, fold);
                if let UserThreadKind::Exit { .. } = kind {
                    lwp.exited = Some(thread);
                }
            }
            _ if self.is_blind(now) => {}
            UserThreadKind::Switch { prev, next, cause } => {
                self.leaves(prev, cause, (tid, cpu), times, lwps, fold);
                if !next.is_none() {
                    self.runs(key(next), (tid, cpu), times, lwps, fold);
                }
            }
            UserThreadKind::Wake { thread } => {
                let waker = self.waker(lwp, lwp.cpu().or(cpu));
                self.woken(key(thread), &waker, now, fold);
            }
            UserThreadKind::Exit { thread } => {
                let runs = self.get(key(thread)).map(|thread| thread.state);
                // Running: its last switch implies the same. All others end now.
                if !matches!(runs, Some(State::Running { .. }) | None) {
                    self.end(key(thread), now, fold);
                    lwp.exited = Some(thread);
                }
            }
            UserThreadKind::Wait { kind } => self.waits(lwp.carries, Some(kind)),
            UserThreadKind::Acquired => self.waits(lwp.carries, None),
            UserThreadKind::Worker => self.runs_none(lwp, now, fold),
        }
    }

    /// A new user thread; one that had its number has ended.
    fn created(
        &mut self,
        key: Key,
        origin: Origin,
        by: &Waker,
        now: Timestamp,
        lwps: &mut Lwps,
        fold: &mut impl Fold,
    ) {
        if let Some(namesake) = self.remove(key) {
            self.interrupt(&namesake, lwps, now, fold);
            self.finish_one(namesake, now, fold);
        }
        let new = UserThread::new(TaskSerial(self.serials), key, now, self.wakeless);
        let mut created = new.of_origin(origin);
        created.learn_name(&self.origins);
        // Else its first switch may be missing.
        if !self.is_blind(now) && !self.unseen {
            created = created.ready();
        }
        self.serials += 1;
        fold.change(Change::UserThreadCreated { thread: &created, by, at: now });
        self.programs.at(key.owner, Numbers::default).insert(key.id, created);
    }

    /// A user thread that was there before the recording, which began at `begin`.
    fn existed(&mut self, key: Key, origin: Origin, begin: Timestamp, fold: &mut impl Fold) {
        let known = self.known(key, begin);
        if known.name.is_empty() {
            known.origin = Some(origin);
            let thread = self.known(key, begin); // by its name
            fold.change(Change::UserThreadNamed { thread });
        }
    }

    fn renamed(&mut self, key: Key, name: &[u8], begin: Timestamp, fold: &mut impl Fold) {
        let thread = self.known(key, begin);
        thread.rename(name);
        fold.change(Change::UserThreadNamed { thread });
    }

    /// A worker's own event: it runs no user thread now.
    fn runs_none(&mut self, lwp: &mut Lwp, now: Timestamp, fold: &mut impl Fold) {
        // From all others, the switch away from what it ran is missing.
        if lwp.carries != Carries::None {
            lwp.report(now, fold);
            self.let_go(lwp, fold);
            lwp.carries = Carries::None;
        }
    }

    /// A wake-up; without the switches it is not known whether the thread waited.
    fn woken(&mut self, key: Key, by: &Waker, now: Timestamp, fold: &mut impl Fold) {
        let unseen = self.unseen;
        if let Some(thread) = self.get_mut(key) {
            // From every state: without the switches, it stays. With them, `wakes` lists which ones change.
            match unseen {
                true => thread.wakeups += 1,
                false => thread.wakes(now, fold),
            }
            fold.change(Change::UserThreadWoken { thread, by, at: now });
        }
    }

    /// What the running user thread waits for from now on.
    fn waits(&mut self, carries: Carries, on: Option<Name>) {
        if let Carries::Thread(key) = carries
            && let Some(thread) = self.get_mut(key)
        {
            thread.waits_for = on;
        }
    }

    pub(super) fn origin_name(&self, origin: Origin) -> Option<&str> {
        std::str::from_utf8(self.origins.get(origin)?).ok()
    }

    fn remove(&mut self, key: Key) -> Option<UserThread> {
        self.programs.get_mut(key.owner)?.remove(key.id)
    }

    fn known(&mut self, key: Key, begin: Timestamp) -> &mut UserThread {
        let (serials, wakeless) = (&mut self.serials, self.wakeless);
        let threads = self.programs.at(key.owner, Numbers::default);
        let thread = threads.at(key.id, || {
            *serials += 1;
            UserThread::new(TaskSerial(*serials - 1), key, begin, wakeless)
        });
        thread.learn_name(&self.origins);
        thread
    }
}

/// Whose user threads an LWP runs.
fn owner(lwp: &Lwp) -> Owner {
    Owner::of(lwp.process, lwp.tid)
}
