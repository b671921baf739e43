//! States of threads, tasks and CPUs, and what wakes them.

use super::Timeline;
use crate::change::Change;
use crate::model::{ContainerId, NameId, at};
use tracewing_analysis::Party;
use tracewing_timeline::Interval;
use tracewing_trace::super_trace::{self, Doing, Fold, Lwp, Mode, UserThread, Waker};
use tracewing_units::Timestamp;

impl Fold for Timeline {
    #[inline(always)]
    fn change(&mut self, change: super_trace::Change<'_>) {
        match change {
            super_trace::Change::LwpDid { lwp, doing, from, to } => self.lwp(lwp, doing, from, to),
            super_trace::Change::LwpRan { lwp, thread } => self.ran(lwp, thread),
            super_trace::Change::UserThreadDid { thread, doing, from, to } => {
                self.user_thread(thread, doing, from, to)
            }
            super_trace::Change::LwpWoken { lwp, by, at } => self.lwp_woken(lwp, by, at),
            super_trace::Change::UserThreadCreated { thread, by, at } => {
                self.user_thread_created(thread, by, at)
            }
            super_trace::Change::UserThreadWoken { thread, by, at } => self.user_thread_woken(thread, by, at),
            super_trace::Change::LwpEnds { lwp } => self.lwp_ends(lwp),
            super_trace::Change::UserThreadEnds { thread } => self.user_thread_ends(thread),
            _ => {}
        }
    }
}

impl Timeline {
    /// A container was in one state for an interval; `runs` if a wake can lead to this state.
    pub(super) fn did(&mut self, of: ContainerId, name: NameId, runs: bool, from: Timestamp, to: Timestamp) {
        let line = &mut self.lines[of as usize];
        let from = from.max(line.to);
        if from >= to {
            return;
        }
        let before = line.state.replace(name);
        let until = std::mem::replace(&mut line.to, to);
        (line.begin, line.end) = (line.begin.min(from), line.end.max(to));
        if before == Some(name) && until == from {
            return;
        }
        let woken = line.woken.take_if(|(at, by)| runs && *at <= from && *by != of);
        if before.is_some() && until < from {
            self.push(Change::NoState { of }, until);
        }
        let woken = woken.map(|(at, by)| {
            self.links += 1;
            self.touch(by, at);
            self.push(Change::Wake { of: by, woken: of, link: self.links }, at);
            (self.links, by)
        });
        self.push(Change::State { of, name, woken }, from);
    }

    /// Extends the container's lifetime to include `time`.
    pub(super) fn touch(&mut self, of: ContainerId, time: Timestamp) {
        let line = &mut self.lines[of as usize];
        (line.begin, line.end) = (line.begin.min(time), line.end.max(time));
    }

    /// Records which waker made `woken` ready; there is at most one per state.
    pub(super) fn wake(&mut self, woken: ContainerId, by: &Waker, at: Timestamp) {
        let by = match (by.interrupt, by.user_thread_serial.and_then(|serial| *self.tasks.get(serial.0)?)) {
            (Some(_), _) => by.cpu.map(|cpu| self.cpu(cpu).container),
            (None, Some(task)) if self.is_task(woken) => Some(task),
            (None, _) => by.lwp.zip(by.tid).map(|(serial, tid)| self.lwp_container(serial, tid)),
        };
        if let Some(by) = by {
            self.lines[woken as usize].woken.get_or_insert((at, by));
        }
    }

    #[inline]
    fn lwp(&mut self, lwp: &Lwp, doing: Doing, from: Timestamp, to: Timestamp) {
        if from >= to {
            return;
        }
        let container = self.lwp_container(lwp.serial, lwp.tid);
        let name = match (doing, lwp.waits_for) {
            (Doing::Running { mode: Mode::User, .. }, Some(lock)) => self.model.names.spinning(lock),
            _ => self.model.names.state(doing),
        };
        self.did(container, name, matches!(doing, Doing::Running { .. }), from, to);
        if lwp.runs_user_thread() {
            let pushed = self.undecided(lwp.serial).push(Interval { name, from, to });
            self.check(pushed);
        }
        if let Doing::Running { cpu, .. } = doing {
            let label = self.model.containers[container as usize].label;
            let cpu = self.cpu(cpu).container;
            self.did(cpu, label, false, from, to);
        }
    }

    fn ran(&mut self, lwp: &Lwp, thread: Option<&UserThread>) {
        let Some(Some(undecided)) = self.undecided.get_mut(lwp.serial.0).map(Option::take) else { return };
        let mut undecided = undecided;
        let done = match thread {
            Some(thread) => {
                let task = self.task_container(thread);
                undecided.drain(|Interval { name, from, to }| {
                    self.did(task, name, true, from, to);
                    Ok(())
                })
            }
            None => undecided.clear(),
        };
        self.undecided[lwp.serial.0] = Some(undecided);
        self.check(done);
    }

    fn user_thread(&mut self, thread: &UserThread, doing: Doing, from: Timestamp, to: Timestamp) {
        if from >= to {
            return;
        }
        let task = self.task_container(thread);
        let name = self.model.names.state(doing);
        self.did(task, name, false, from, to);
    }

    fn lwp_woken(&mut self, lwp: &Lwp, by: &Waker, at: Timestamp) {
        let woken = self.lwp_container(lwp.serial, lwp.tid);
        self.wake(woken, by, at);
    }

    fn user_thread_created(&mut self, thread: &UserThread, by: &Waker, at: Timestamp) {
        let woken = self.task_container(thread);
        self.wake(woken, by, at);
    }

    fn user_thread_woken(&mut self, thread: &UserThread, by: &Waker, at: Timestamp) {
        let woken = self.task_container(thread);
        self.wake(woken, by, at);
    }

    fn lwp_ends(&mut self, lwp: &Lwp) {
        if let Some(Some(known)) = self.lwps.get(lwp.serial.0) {
            self.model.containers[*known as usize].ends(lwp.process, &lwp.name, lwp.followed);
        }
        at(&mut self.undecided, lwp.serial.0).take();
        self.lock_user_ends(Party::Thread(lwp.tid), lwp.reported_to());
    }

    fn user_thread_ends(&mut self, thread: &UserThread) {
        if let Some(Some(known)) = self.tasks.get(thread.serial.0) {
            self.model.containers[*known as usize].ends(thread.process, &thread.name, true);
        }
        self.lock_user_ends(Party::Task(thread.process, thread.id), thread.reported_to());
    }
}
