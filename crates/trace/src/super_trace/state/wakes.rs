//! Wakes: which thread or interrupt wakes which thread.

use super::SuperTrace;
use crate::super_trace::activity::{Activity, Context, Interrupt, Kind};
use crate::super_trace::coverage::Interrupts;
use crate::super_trace::cpu::CpuState;
use crate::super_trace::doing::Waker;
use crate::super_trace::fold::{Change, Fold};
use crate::super_trace::lwp::{Lwp, State};
use tracewing_units::{Tid, Timestamp};

/// How the names of the kernel's stoppers begin, one for each CPU, with its number after it
/// (`kernel/stop_machine.c`).
const STOPPER: &str = "migration/";

impl SuperTrace {
    pub(super) fn woken<F: Fold>(
        &mut self,
        (tid, name): (Tid, &[u8]),
        event: &Activity<'_>,
        fold: &mut F,
        how: fn(&mut Lwp, Timestamp, &mut F) -> bool,
    ) {
        let now = event.time;
        let lwp = self.known(tid);
        if !lwp.has_name() {
            lwp.rename(name);
        }
        let by_creator = lwp.waits_for_creator();
        if how(lwp, now, fold) {
            let waker = self.waker(event, by_creator);
            let is_delivered = matches!(event.kind, Kind::Wakeup { .. }) && !by_creator;
            let is_waker = !is_delivered || self.wakes_itself(&waker, event);
            let waker = if is_waker { waker } else { Waker::unknown(None) };
            fold.change(Change::LwpWoken { lwp: self.known(tid), by: &waker, at: now });
        }
        // While events may be missing, from all states but Running: it may have had a CPU since. What runs
        // shows itself.
        if self.is_blind(now) {
            let lwp = self.known(tid);
            if !matches!(lwp.state(), State::Running { .. }) {
                lwp.lose(now, fold);
            }
        }
    }

    /// The waker, for a kernel event; `by_thread` if it cannot be an interrupt.
    pub(super) fn waker(&self, event: &Activity<'_>, by_thread: bool) -> Waker {
        let cpu = event.cpu.and_then(|cpu| self.cpus.get(cpu));
        if let Some(interrupt) = CpuState::interrupt_of(cpu, event.context) {
            let raiser = cpu.and_then(|cpu| cpu.raiser(interrupt));
            let raiser = raiser.unwrap_or_else(|| Waker::unknown(event.cpu));
            return Waker { interrupt: Some(interrupt), ..raiser };
        }
        let by_thread = by_thread || event.context == Context::Thread;
        let tid = event.tid.or_else(|| cpu?.current);
        match tid.and_then(|tid| self.lwps.get(tid)) {
            Some(lwp) if by_thread || self.has_interrupts_of(lwp) => self.programs.waker(lwp, event.cpu),
            // It is the CPU's idle thread, which is no less informative: it does nothing itself.
            None if tid == Some(Tid::IDLE) => Waker { tid, ..Waker::unknown(event.cpu) },
            _ => Waker::unknown(event.cpu),
        }
    }

    /// Whether `waker`, which runs where a wake-up is recorded, is surely what woke. A CPU may leave it to
    /// the woken thread's CPU to make that runnable, which records the wake-up in an interrupt of kind
    /// [`Interrupt::Call`], in its idle thread or in its stopper (`sched_ttwu_pending` of
    /// `kernel/sched/core.c`). All else makes runnable what it wakes itself.
    fn wakes_itself(&self, waker: &Waker, event: &Activity<'_>) -> bool {
        if waker.interrupt.is_some() {
            let innermost = event.cpu.and_then(|cpu| self.cpus.get(cpu)?.interrupted_by());
            return match event.context {
                Context::Softirq(_) => true,
                _ if self.coverage.interrupts == Interrupts::Unrecorded => false,
                Context::Interrupt(_) => innermost == Some(Interrupt::Vector),
                Context::Unknown | Context::Thread => {
                    matches!(innermost, Some(Interrupt::Vector | Interrupt::Softirq))
                }
            };
        }
        let lwp = waker.tid.and_then(|tid| self.lwps.get(tid));
        lwp.is_some_and(|lwp| {
            let is_thread = event.context == Context::Thread || self.has_interrupts_of(lwp);
            is_thread && lwp.has_name() && !lwp.name.starts_with(STOPPER)
        })
    }

    /// Whether the recording has all interrupts that came while this one ran.
    fn has_interrupts_of(&self, lwp: &Lwp) -> bool {
        match self.coverage.interrupts {
            Interrupts::OfAll => true,
            Interrupts::OfFollowed => lwp.followed,
            Interrupts::Unrecorded => false,
        }
    }
}
