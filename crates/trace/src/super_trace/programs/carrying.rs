//! Which LWP runs which user thread.

use super::{Key, Lwps, Programs, State, UserThread, owner};
use crate::super_trace::activity::SwitchCause;
use crate::super_trace::comm::Comm;
use crate::super_trace::doing::{Mode, Waker};
use crate::super_trace::fold::{Change, Fold};
use crate::super_trace::lwp::{Carries, Lwp, Sight};
use tracewing_units::{Cpu, Task, Tid, Timestamp};

impl Programs {
    /// The LWP `tid` stops running `prev`, or none if that is 0.
    pub(super) fn leaves(
        &mut self,
        prev: Task,
        cause: SwitchCause,
        (tid, cpu): (Tid, Option<Cpu>),
        (now, begin): (Timestamp, Timestamp),
        lwps: &mut Lwps,
        fold: &mut impl Fold,
    ) {
        let Some(lwp) = lwps.get_mut(tid) else { return };
        let key = Key { owner: owner(lwp), id: prev };
        let unseen = self.unseen;
        let has_exited = lwp.exited.take() == Some(prev) && cause == SwitchCause::Ended;
        lwp.report(now, fold);
        if lwp.carries == Carries::Late(key) {
            // From `Late`: taken over, and reported, before; it may even have ended.
            fold.change(Change::LwpRan { lwp, thread: None });
            lwp.carries = Carries::None;
            return;
        }
        // From `Thread` of this one: it ran until now. From all others: the switch to it is missing, and what
        // was thought to run instead has stopped unseen.
        if lwp.carries == Carries::Thread(key)
            && let Some(thread) = self.get_mut(key)
        {
            fold.change(Change::LwpRan { lwp, thread: Some(&*thread) });
            lwp.carries = Carries::None;
            let cpu = lwp.cpu().or(cpu);
            fold.change(Change::UserThreadStops { thread, lwp, cpu, cause, at: now });
            thread.stops(cause, now, fold);
            if unseen {
                thread.vanishes();
            }
        } else {
            self.let_go(lwp, fold);
            lwp.carries = Carries::None;
            // One that its exit has ended is not another one of that number.
            let is_over = has_exited && self.get(key).is_none();
            if !prev.is_none() && !is_over {
                self.known(key, begin);
                self.leaves_others(key, now, lwps, fold);
                if let Some(thread) = self.get_mut(key) {
                    thread.stops(cause, now, fold);
                    if unseen {
                        thread.vanishes();
                    }
                }
            }
        }
        if cause == SwitchCause::Ended {
            self.end(key, now, fold);
        }
    }

    /// The LWP `tid`, which runs none, begins to run a user thread, on `cpu` if its event says so.
    pub(super) fn runs(
        &mut self,
        key: Key,
        (tid, cpu): (Tid, Option<Cpu>),
        (now, begin): (Timestamp, Timestamp),
        lwps: &mut Lwps,
        fold: &mut impl Fold,
    ) {
        let is_extract = !self.chosen.is_empty();
        let mut thread = self.known(key, begin);
        if let State::Running { tid: other } = thread.state {
            // Running here, or where switches are missing anyway: it has stopped unseen. Running on another
            // LWP: that one is late to report the stop.
            match other == tid || is_extract || self.unseen {
                true => self.leaves_others(key, now, lwps, fold),
                false => self.stop_unreported(key, other, now, lwps, fold),
            }
            thread = self.known(key, begin);
        }
        let Some(lwp) = lwps.get_mut(tid) else { return };
        if is_extract {
            self.comes_into_sight(key, lwp, cpu, now, fold);
            thread = self.known(key, begin);
        }
        let polls = thread.polls;
        thread.begins(tid, now, fold);
        let is_poll = thread.polls > polls;
        lwp.polls += u64::from(is_poll);
        lwp.carries = Carries::Thread(key);
        lwp.carried_to = lwp.cpu().or(cpu);
        fold.change(Change::UserThreadRuns { thread, lwp, cpu: lwp.carried_to, is_poll, at: now });
        lwp.carried_to.into_iter().for_each(|cpu| thread.arrives(cpu));
    }

    /// A user thread is seen elsewhere than on the LWP that was thought to run it.
    fn leaves_others(&mut self, key: Key, now: Timestamp, lwps: &mut Lwps, fold: &mut impl Fold) {
        // In all states but Running, no LWP has it.
        if let Some(State::Running { tid }) = self.get(key).map(|thread| thread.state)
            && let Some(other) = lwps.get_mut(tid)
        {
            other.report(now, fold);
            self.let_go(other, fold);
        }
    }

    /// The LWP runs another user thread than assumed, since an unknown time.
    pub(super) fn let_go(&mut self, lwp: &mut Lwp, fold: &mut impl Fold) {
        fold.change(Change::LwpRan { lwp, thread: None });
        // From `Thread`: that one is somewhere else. From all others, no task's state depends on it.
        if let Carries::Thread(key) = std::mem::replace(&mut lwp.carries, Carries::Unknown) {
            self.get_mut(key).into_iter().for_each(UserThread::vanishes);
        }
    }

    /// The LWP ran the assumed user thread up to its last reported time.
    pub(super) fn ran(&self, lwp: &Lwp, fold: &mut impl Fold) {
        match lwp.carries {
            Carries::Thread(key) => fold.change(Change::LwpRan { lwp, thread: self.get(key) }),
            Carries::None | Carries::Unknown | Carries::Late(_) => {
                fold.change(Change::LwpRan { lwp, thread: None })
            }
        }
    }

    /// The waker, for an action of an LWP on a CPU.
    pub(in super::super) fn waker(&self, lwp: &Lwp, cpu: Option<Cpu>) -> Waker {
        let thread = match lwp.carries {
            Carries::Thread(key) => self.get(key),
            Carries::None | Carries::Unknown | Carries::Late(_) => None,
        };
        Waker {
            cpu,
            interrupt: None,
            call: match lwp.mode() {
                Mode::SystemCall(call) => Some(call),
                _ => None,
            },
            mode: lwp.mode(),
            is_kernel: lwp.is_kernel,
            process: lwp.process,
            tid: Some(lwp.tid),
            name: Comm::new(&lwp.name),
            lwp: Some(lwp.serial),
            user_thread: thread.map(|thread| thread.id),
            user_thread_serial: thread.map(|thread| thread.serial),
        }
    }

    /// The user thread that an LWP runs is on this CPU now.
    pub(in super::super) fn arrives(&mut self, key: Key, cpu: Cpu) {
        self.get_mut(key).into_iter().for_each(|thread| thread.arrives(cpu));
    }

    /// An LWP, which runs none, begins to run a user thread in a recording that is a part of some.
    #[cold]
    fn comes_into_sight(
        &self,
        key: Key,
        lwp: &mut Lwp,
        cpu: Option<Cpu>,
        now: Timestamp,
        fold: &mut impl Fold,
    ) {
        if let Sight::WithThread { chosen } = &mut lwp.sight {
            *chosen = self.is_chosen(key);
        }
        // How it came to its CPU has been left out.
        if let Some(cpu) = cpu {
            lwp.seen_on(cpu, now, fold);
            lwp.in_program(true, now, fold);
        }
    }

    /// A user thread has blocked and was woken, but the LWP `tid` that ran it has not reported the stop yet:
    /// it is taken to have stopped now.
    fn stop_unreported(&mut self, key: Key, tid: Tid, now: Timestamp, lwps: &mut Lwps, fold: &mut impl Fold) {
        let Some(lwp) = lwps.get_mut(tid) else { return };
        lwp.report(now, fold);
        if let Some(thread) = self.get_mut(key) {
            fold.change(Change::LwpRan { lwp, thread: Some(&*thread) });
            let (cpu, cause) = (lwp.cpu().or(lwp.carried_to), SwitchCause::Blocked);
            fold.change(Change::UserThreadStops { thread, lwp, cpu, cause, at: now });
            thread.stops(SwitchCause::Blocked, now, fold);
        }
        lwp.carries = Carries::Late(key);
    }

    /// Whether the recording has all events of a user thread, which is known.
    fn is_chosen(&self, key: Key) -> bool {
        let Some(UserThread { process, id, name, .. }) = self.get(key) else { return false };
        self.chosen.iter().all(|any| any.iter().any(|pattern| pattern.matches(*process, *id, name)))
    }
}
