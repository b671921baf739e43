//! States of threads, tasks and CPUs, and what wakes them.

use super::Timeline;
use crate::model::ContainerId;
use tracewing_analysis::Party;
use tracewing_trace::super_trace::{Change, Fold, Waker};
use tracewing_units::Timestamp;

impl Fold for Timeline {
    #[inline(always)]
    fn change(&mut self, change: Change<'_>) {
        match change {
            // A wake shows the waker of the same level, or the CPU of the interrupt.
            Change::LwpWoken { lwp, by, at } => {
                let woken = self.states.lwp_track(lwp.serial, lwp.tid);
                self.wake(woken, by, at);
            }
            Change::UserThreadCreated { thread, by, at } | Change::UserThreadWoken { thread, by, at } => {
                let woken = self.states.task_track(thread.serial, thread.id);
                self.wake(woken, by, at);
            }
            Change::LwpEnds { lwp } => {
                // One of which nothing was reported is not shown, nor counted.
                if self.states.known_lwp(lwp.serial).is_some() {
                    self.states.change(change);
                }
                self.lock_user_ends(Party::Thread(lwp.tid), lwp.reported_to());
            }
            Change::UserThreadEnds { thread } => {
                if self.states.known_task(thread.serial).is_some() {
                    self.states.change(change);
                }
                self.lock_user_ends(Party::Task(thread.process, thread.id), thread.reported_to());
            }
            // Time in which a CPU is idle is found in the switches: interrupts in it are not shown.
            Change::CpuIdled { .. } | Change::LwpHidesCalls { .. } => {}
            _ => self.states.change(change),
        }
    }
}

impl Timeline {
    fn wake(&mut self, woken: ContainerId, by: &Waker, at: Timestamp) {
        let task = by.user_thread_serial.and_then(|serial| self.states.known_task(serial));
        let by = match (by.interrupt, task) {
            (Some(_), _) => by.cpu.map(|cpu| self.states.cpu_track(cpu)),
            (None, Some(task)) if self.states.sink.is_task(woken) => Some(task),
            (None, _) => by.lwp.zip(by.tid).map(|(serial, tid)| self.states.lwp_track(serial, tid)),
        };
        if let Some(by) = by {
            self.states.sink.wake(woken, by, at);
        }
    }
}
