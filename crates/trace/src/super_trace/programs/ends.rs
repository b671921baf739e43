//! How user threads end, and what makes them unknown: losses, the ends of their LWPs and programs, and of the
//! recording.

use super::{Key, Lwps, Numbers, Owner, Programs, State, UserThread, UserThreads};
use crate::super_trace::fold::{Change, Fold};
use crate::super_trace::lwp::{Carries, Lwp};
use tracewing_units::{Pid, Tid, Timestamp};

impl Programs {
    /// The process of an LWP becomes known.
    pub(in super::super) fn adopt(
        &mut self,
        tid: Tid,
        process: Pid,
        now: Timestamp,
        lwps: &mut Lwps,
        fold: &mut impl Fold,
    ) {
        let Some(orphans) = self.programs.remove(Owner::lwp(tid)) else { return };
        let owner = Owner::process(process);
        let Some(lwp) = lwps.get_mut(tid) else { return };
        // From `Thread`: the LWP runs the same one, whose owner is another now.
        if let Carries::Thread(key) = &mut lwp.carries {
            key.owner = owner;
        }
        for (id, mut orphan) in orphans.into_iter() {
            // One that the process has by that number is the same one: it cannot run elsewhere.
            if let Some(double) = self.remove(Key { owner, id }) {
                self.interrupt(&double, lwps, now, fold);
                self.finish_one(double, now, fold);
            }
            orphan.process = Some(process);
            self.programs.at(owner, Numbers::default).insert(id, orphan);
        }
    }

    /// Events of programs between `from` and `to` are missing.
    pub(in super::super) fn lost(
        &mut self,
        from: Timestamp,
        to: Timestamp,
        lwps: &mut Lwps,
        fold: &mut impl Fold,
    ) {
        self.blind_until = self.blind_until.max(to);
        // From every state, of LWPs and of tasks: a switch may be missing.
        for lwp in lwps.values_mut() {
            lwp.report(from, fold);
            self.ran(lwp, fold);
            lwp.carries = Carries::Unknown;
            lwp.waits_for = None;
        }
        for thread in self.programs.values_mut().flat_map(UserThreads::values_mut) {
            thread.lose(from, fold);
        }
    }

    /// The user thread that an LWP runs from now on, and the state of the previous one, are unknown.
    pub(in super::super) fn loses_sight(&mut self, lwp: &mut Lwp, now: Timestamp, fold: &mut impl Fold) {
        lwp.report(now, fold);
        self.ran(lwp, fold);
        // From `Thread`: what it does from now on is unknown, too. From all others, no task is concerned.
        if let Carries::Thread(key) = std::mem::replace(&mut lwp.carries, Carries::Unknown)
            && let Some(thread) = self.get_mut(key)
        {
            thread.lose(now, fold);
        }
    }

    /// An LWP has ended, and what it ran with it.
    pub(in super::super) fn detach(&mut self, lwp: &mut Lwp, fold: &mut impl Fold) {
        self.ran(lwp, fold);
        // From `Thread`: one that runs ends with its LWP. From all others, no task is concerned.
        if let Carries::Thread(key) = std::mem::replace(&mut lwp.carries, Carries::Unknown)
            && let Some(thread) = self.remove(key)
        {
            fold.change(Change::UserThreadEnds { thread: &thread });
        }
    }

    /// A program has ended, or another one has taken its process.
    pub(in super::super) fn ends(
        &mut self,
        owner: Owner,
        now: Timestamp,
        lwps: &mut Lwps,
        fold: &mut impl Fold,
    ) {
        if !self.has(owner) {
            return;
        }
        for lwp in lwps.values_mut() {
            if matches!(lwp.carries, Carries::Thread(key) if key.owner == owner) {
                lwp.report(now, fold);
                self.detach(lwp, fold);
            }
        }
        let threads = self.programs.remove(owner).unwrap_or_default();
        threads.into_iter().for_each(|(_, thread)| self.finish_one(thread, now, fold));
    }

    /// What lies before `time` counts no longer.
    pub(in super::super) fn restart(&mut self, time: Timestamp) {
        self.programs.values_mut().flat_map(UserThreads::values_mut).for_each(|thread| thread.restart(time));
    }

    /// The recording ends; each LWP has reported its last interval.
    pub(in super::super) fn finish(&mut self, now: Timestamp, lwps: &mut Lwps, fold: &mut impl Fold) {
        lwps.values().for_each(|lwp| self.ran(lwp, fold));
        let threads = self.programs.values_mut().flat_map(UserThreads::values_mut);
        threads.for_each(|thread| {
            thread.learn_name(&self.origins);
            thread.finish(now, fold);
        });
    }

    /// Ends what an LWP does for a user thread whose number is given again.
    pub(super) fn interrupt(
        &mut self,
        thread: &UserThread,
        lwps: &mut Lwps,
        now: Timestamp,
        fold: &mut impl Fold,
    ) {
        if let State::Running { tid } = thread.state
            && let Some(lwp) = lwps.get_mut(tid)
        {
            lwp.report(now, fold);
            fold.change(Change::LwpRan { lwp, thread: Some(thread) });
            lwp.carries = Carries::Unknown;
        }
    }

    pub(super) fn end(&mut self, key: Key, now: Timestamp, fold: &mut impl Fold) {
        if let Some(thread) = self.remove(key) {
            self.finish_one(thread, now, fold);
        }
    }

    pub(super) fn finish_one(&self, mut thread: UserThread, now: Timestamp, fold: &mut impl Fold) {
        thread.learn_name(&self.origins);
        thread.finish(now, fold);
    }
}
