//! A CPU: its running thread, the interrupts on it, and its idle times.

use super::activity::{Context, Interrupt, Name};
use super::doing::Waker;
use super::fold::{Change, Fold};
use tracewing_units::{Cpu, Tid, Timestamp};

/// What is known of a CPU.
#[derive(Debug, Clone)]
pub(super) struct CpuState {
    /// The running thread, 0 for the idle thread; `None` if unknown.
    pub current: Option<Tid>,
    /// The thread that the last switch was away from, until another one is seen.
    pub(super) leaving: Option<Tid>,
    /// Interrupts within each other; at most one of each kind.
    pub(super) interrupts: Vec<(Interrupt, Name)>,
    /// Softirqs that have not run yet, and the thread that asked first for each, if it was one.
    pub(super) raised: Vec<(Name, Option<Waker>)>,
    /// The running softirq, and the waker that raised it.
    pub(super) softirq: Option<(Name, Waker)>,
    /// Up to when its state without a thread has been reported.
    pub(super) since: Timestamp,
    /// How often it went over to its idle thread since events were lost, and whether it ever left that.
    pub(super) idled: u64,
    pub(super) leaves_idle: bool,
}

impl CpuState {
    /// A CPU that is watched since `begin` and whose state is unknown.
    pub(super) fn since(begin: Timestamp) -> Self {
        let (interrupts, raised) = (Vec::new(), Vec::new());
        Self {
            current: None,
            leaving: None,
            interrupts,
            raised,
            softirq: None,
            since: begin,
            idled: 0,
            leaves_idle: false,
        }
    }

    /// A thread is seen to run on it; gives the one that was thought to.
    pub(super) fn runs(&mut self, tid: Tid, now: Timestamp) -> Option<Tid> {
        // The first thread seen has run since the CPU is watched: a switch would have shown otherwise.
        self.since = self.since.min(now);
        self.leaving = None;
        self.current.replace(tid)
    }

    /// Whether `tid` is the thread that the last switch was away from. The kernel records a switch shortly
    /// before it makes it: what it records between (a lock that it waits for) has the old thread's number,
    /// and is no sign that this one runs.
    pub(super) fn is_left_by(&self, tid: Tid) -> bool {
        self.leaving == Some(tid) && !(self.current == Some(Tid::IDLE) && self.hides_idle())
    }

    /// It goes from `prev` to `next`.
    pub(super) fn switch(
        &mut self,
        number: Cpu,
        (prev, next): (Tid, Tid),
        now: Timestamp,
        fold: &mut impl Fold,
    ) {
        self.report(number, now, fold);
        self.idled += u64::from(next.is_idle());
        self.leaves_idle |= prev.is_idle();
        self.drop_interrupts(now);
        (self.current, self.leaving) = (Some(next), Some(prev).filter(|prev| *prev != next));
    }

    /// Reports its state up to now if it has no thread.
    pub(super) fn report(&mut self, number: Cpu, now: Timestamp, fold: &mut impl Fold) {
        let now = now.max(self.since);
        if self.current == Some(Tid::IDLE) && self.since < now {
            fold.change(Change::CpuIdled {
                cpu: number,
                interrupt: self.interrupt(),
                from: self.since,
                to: now,
            });
        }
        self.since = now;
    }

    /// Whether it repeatedly switched to its idle thread without an event that it left it.
    pub(super) fn hides_idle(&self) -> bool {
        self.idled > 1 && !self.leaves_idle
    }

    pub(super) fn is_interrupted(&self) -> bool {
        !self.interrupts.is_empty()
    }

    /// The softirq on it, whatever has interrupted that. Of the interrupts of threads, only a softirq can be
    /// interrupted by the timer.
    pub(super) fn softirq(&self) -> Option<Name> {
        let softirq = self.interrupts.iter().find(|(kind, _)| *kind == Interrupt::Softirq);
        softirq.map(|(_, name)| *name)
    }

    /// The innermost interrupt that has it and is no softirq.
    pub(super) fn hard_interrupt(&self) -> Option<Name> {
        self.interrupts.last().filter(|(kind, _)| *kind != Interrupt::Softirq).map(|(_, name)| *name)
    }

    /// The kind of the innermost interrupt that has it.
    pub(super) fn interrupted_by(&self) -> Option<Interrupt> {
        self.interrupts.last().map(|(kind, _)| *kind)
    }

    /// The innermost interrupt that has it.
    pub(super) fn interrupt(&self) -> Option<Name> {
        self.interrupts.last().map(|(_, name)| *name)
    }

    /// The thread that asked for this softirq, which runs.
    pub(super) fn raiser(&self, softirq: Name) -> Option<Waker> {
        self.softirq.filter(|(name, _)| *name == softirq).map(|(_, by)| by)
    }

    /// The interrupt that an event belongs to, if it is one's; where the event does not say, as other events
    /// of its CPU do.
    pub(super) fn interrupt_of(cpu: Option<&Self>, context: Context) -> Option<Name> {
        match context {
            Context::Unknown => cpu.and_then(Self::interrupt),
            Context::Thread => None,
            Context::Softirq(general) => Some(cpu.and_then(Self::softirq).unwrap_or(general)),
            Context::Interrupt(general) => Some(cpu.and_then(Self::hard_interrupt).unwrap_or(general)),
        }
    }

    /// A softirq is asked for by a thread, or by an interrupt.
    pub(super) fn raise(&mut self, softirq: Name, by: Option<Waker>) {
        if self.raised.iter().all(|(name, _)| *name != softirq) {
            self.raised.push((softirq, by));
        }
    }

    /// An interrupt begins. What cannot lie below it has ended before; true if that was all, and its end is
    /// missing.
    pub(super) fn enter(
        &mut self,
        number: Cpu,
        interrupt: Interrupt,
        name: Name,
        now: Timestamp,
        fold: &mut impl Fold,
    ) -> bool {
        let was_interrupted = self.is_interrupted();
        let below = self.interrupts.iter().filter(|(below, _)| below.depth() < interrupt.depth()).count();
        let missing = was_interrupted && below == 0;
        match missing {
            true => self.since = self.since.max(now),
            false => self.report(number, now, fold),
        }
        self.interrupts.retain(|(below, _)| below.depth() < interrupt.depth());
        self.interrupts.push((interrupt, name));
        if interrupt == Interrupt::Softirq {
            let raised = self.raised.iter().position(|(raised, _)| *raised == name);
            self.softirq = raised.and_then(|place| Some((name, self.raised.swap_remove(place).1?)));
        }
        missing
    }

    /// An interrupt ends, and those within it; false if it never began.
    pub(super) fn exit(
        &mut self,
        number: Cpu,
        interrupt: Interrupt,
        now: Timestamp,
        fold: &mut impl Fold,
    ) -> bool {
        let began = self.interrupts.iter().any(|(below, _)| *below == interrupt);
        match began || self.is_interrupted() {
            true => self.report(number, now, fold),
            false => self.since = self.since.max(now),
        }
        self.interrupts.retain(|(below, _)| below.depth() < interrupt.depth());
        if interrupt == Interrupt::Softirq {
            self.softirq = None;
        }
        began
    }

    /// The thread is seen to have the CPU: an interrupt's end is missing, or the previous state is unknown.
    pub(super) fn drop_interrupts(&mut self, now: Timestamp) {
        self.interrupts.clear();
        self.softirq = None;
        self.since = self.since.max(now);
    }
}
