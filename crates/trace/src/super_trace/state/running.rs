//! Which thread runs where: what each event shows of the thread and the CPU that recorded it.

use super::SuperTrace;
use super::population::program_name;
use crate::super_trace::activity::{Interrupt, Kind, Name, TaskState};
use crate::super_trace::coverage::Coverage;
use crate::super_trace::cpu::CpuState;
use crate::super_trace::doing::Mode;
use crate::super_trace::fold::{Change, Fold};
use crate::super_trace::lwp::{Carries, State};
use tracewing_units::{Cpu, Tid, Timestamp};

impl SuperTrace {
    /// An interrupt takes a CPU.
    pub(super) fn begins_interrupt(
        &mut self,
        cpu: Cpu,
        kind: Interrupt,
        name: Name,
        now: Timestamp,
        fold: &mut impl Fold,
    ) {
        let state = self.cpus.at(cpu, || CpuState::since(self.begin.unwrap_or(now)));
        let missing = state.enter(cpu, kind, name, now, fold);
        // The thread that has the CPU, in every state. Interrupted by what cannot lie below this interrupt:
        // the end of that is missing, so it resumes first.
        if let Some(lwp) = state.current.and_then(|tid| self.lwps.get_mut(tid)) {
            if missing {
                lwp.resumes(false, now, fold);
            }
            lwp.interrupted(name, now, fold);
        }
    }

    /// An interrupt gives a CPU back: to the interrupt around it, or to the thread.
    pub(super) fn ends_interrupt(&mut self, cpu: Cpu, kind: Interrupt, now: Timestamp, fold: &mut impl Fold) {
        let state = self.cpus.at(cpu, || CpuState::since(self.begin.unwrap_or(now)));
        let began = state.exit(cpu, kind, now, fold);
        if let Some(lwp) = state.current.and_then(|tid| self.lwps.get_mut(tid)) {
            match (began, state.interrupt()) {
                // Interrupted within an interrupt: the outer one has the CPU again.
                (true, Some(outer)) => lwp.interrupted(outer, now, fold),
                // Interrupted by this one only: the thread has its CPU again.
                (true, None) => lwp.resumes(true, now, fold),
                // Interrupted by none around it: the beginning is missing.
                (false, None) => lwp.end_unbegun_interrupt(now, fold),
                // Interrupted by one that began within this one, and whose end is missing: the outer one has
                // the CPU again.
                (false, Some(outer)) if lwp.interrupted != Some(outer) => lwp.interrupted(outer, now, fold),
                // Interrupted by another one, within which this one began unseen: that one still has the CPU.
                (false, Some(_)) => {}
            }
        }
    }

    /// What any event says about the thread that recorded it.
    pub(super) fn seen(&mut self, tid: Tid, cpu: Cpu, now: Timestamp, kind: &Kind<'_>, fold: &mut impl Fold) {
        match kind {
            // They name the thread, and say nothing of where it runs.
            Kind::Introduction { process, name } => {
                return self.introduced(tid, *process, name, now, fold);
            }
            Kind::Program { name } => return self.executes(tid, name, now, fold),
            // What recorded it, and where, is no matter of the threads.
            Kind::Dump { .. }
            | Kind::Asleep { .. }
            | Kind::Named { .. }
            | Kind::Made { .. }
            | Kind::Stateless => return,
            // It shows that there is such a thread. The kernel's events, whose stamps are exact, show when it
            // runs.
            Kind::Sample { .. } => {
                if !tid.is_idle() {
                    self.known(tid).records();
                }
                return;
            }
            Kind::User | Kind::UserThread(_) | Kind::Waits { .. } => {
                return self.seen_in_program(tid, cpu, now, fold);
            }
            // All others are the kernel's: the thread has this CPU.
            _ => {}
        }
        if self.coverage.switches {
            self.takes_over(tid, cpu, now, fold);
        }
        let in_thread = !matches!(
            kind,
            Kind::InterruptEntry { .. }
                | Kind::InterruptExit(_)
                | Kind::Waking { .. }
                | Kind::Wakeup { .. }
                | Kind::Raise { .. }
                | Kind::Kernel
                | Kind::PageFault { user: false, .. }
        );
        if in_thread && self.coverage.switches {
            self.occupy_cpu(tid, cpu, now, fold);
        }
        if !tid.is_idle() {
            self.acts(tid, cpu, now, kind, fold);
        }
    }

    /// What an event of the kernel says about what the thread does that recorded it.
    fn acts(&mut self, tid: Tid, cpu: Cpu, now: Timestamp, kind: &Kind<'_>, fold: &mut impl Fold) {
        let Coverage { switches, page_faults: has_faults, of_listed, system_calls, .. } = self.coverage;
        let lwp = self.known(tid);
        if switches {
            lwp.seen_on(cpu, now, fold);
        }
        match kind {
            // From every mode; the methods list which ones fit.
            Kind::SystemCall { call } => {
                lwp.begins_call(Mode::SystemCall(*call), now, fold);
                fold.change(Change::LwpCalls { lwp, cpu, call: *call, at: now });
            }
            Kind::UnendedCall { call, returns } => {
                lwp.begins_call(if *returns { Mode::User } else { Mode::Unknown }, now, fold);
                fold.change(Change::LwpCalls { lwp, cpu, call: *call, at: now });
            }
            Kind::SystemCallEnd { call } => lwp.ends_call(*call, now, fold),
            // One of its program: from every mode, as any event of that. One that the kernel has for it, in a
            // call: its mode stays.
            Kind::PageFault { user, high } => {
                lwp.page_faults += 1;
                if *user {
                    lwp.in_program(*high, now, fold);
                    lwp.faulted = true;
                }
                fold.change(Change::LwpFaults { lwp, cpu, at: now });
            }
            Kind::Socket => fold.change(Change::LwpUsesSocket { lwp, cpu, at: now }),
            // From every state and mode; the methods list which ones change.
            Kind::Exit { name } => {
                // The kernel says it in some recordings only.
                if !name.is_empty() {
                    lwp.rename(name);
                }
                lwp.exits(now, fold);
            }
            Kind::Exec { file } => {
                lwp.executes_program(has_faults, now, fold);
                return self.executes(tid, program_name(file), now, fold);
            }
            // Recorded about a thread, not by it: no sign that the recording follows it.
            Kind::Switch { .. }
            | Kind::Waking { .. }
            | Kind::Wakeup { .. }
            | Kind::Raise { .. }
            | Kind::InterruptEntry { .. }
            | Kind::InterruptExit(_) => return,
            // Right after a thread that is not followed wakes a followed one, some recordings have an event
            // of a contended lock in the waker. What a followed thread does, its system calls show.
            Kind::Kernel if of_listed && system_calls => return,
            // All others that come here (forks, other events of the kernel): it runs, in the mode that it is
            // in.
            _ => {}
        }
        lwp.records();
        self.follows = true;
    }

    /// An event of its program shows that a thread runs, but not where: some tracers let a thread write into
    /// the buffer of a CPU that it has just left.
    fn seen_in_program(&mut self, tid: Tid, cpu: Cpu, now: Timestamp, fold: &mut impl Fold) {
        self.follows = true;
        let lwp = self.known(tid);
        lwp.user_events += 1;
        fold.change(Change::LwpRecords { lwp, cpu, at: now });
        lwp.records();
        // Running: the event fits, and no interrupt has the CPU. Off CPUs: `does_not_wait` doubts it.
        let Some(cpu) = lwp.cpu() else {
            return lwp.does_not_wait(now, fold);
        };
        lwp.resumes(false, now, fold);
        lwp.in_program(true, now, fold);
        if let Some(cpu) = self.cpus.get_mut(cpu) {
            cpu.drop_interrupts(now);
        }
    }

    /// A switch is recorded if the recording follows one of its threads, which no idle thread is.
    fn shows_followed(&mut self, prev: Tid, next: Tid) {
        let tid = if prev.is_idle() { next } else { prev };
        if self.coverage.of_listed && prev.is_idle() != next.is_idle() && !self.ended.contains_key(&tid) {
            self.known(tid).records();
            self.follows = true;
        }
    }

    /// A thread does something on a CPU, so no interrupt occupies it any more.
    pub(super) fn occupy_cpu(&mut self, tid: Tid, cpu: Cpu, now: Timestamp, fold: &mut impl Fold) {
        if let Some(state) = self.cpus.get_mut(cpu)
            && state.is_interrupted()
        {
            state.drop_interrupts(now);
            if let Some(lwp) = self.lwps.get_mut(tid) {
                lwp.resumes(false, now, fold);
            }
        }
    }

    /// A CPU runs `tid`, as an event shows. Where another thread was thought to run, a switch is missing.
    pub(super) fn takes_over(&mut self, tid: Tid, cpu: Cpu, now: Timestamp, fold: &mut impl Fold) {
        let begin = self.begin.unwrap_or(now);
        let state = self.cpus.at(cpu, || CpuState::since(begin));
        let before = state.runs(tid, now);
        if let Some(before) = before
            && before != tid
        {
            state.drop_interrupts(now);
            if self.takes_first_number(before, tid) {
                return;
            }
            self.partial = true;
            // Running here: the switch away is missing. In all other states, an event has moved it on.
            if let Some(lwp) = self.lwps.get_mut(before)
                && lwp.state() == (State::Running { cpu })
            {
                lwp.doubt(now, fold);
            }
        }
    }

    pub(super) fn switch(
        &mut self,
        cpu: Cpu,
        now: Timestamp,
        prev: (Tid, &[u8], TaskState),
        next: (Tid, &[u8]),
        fold: &mut impl Fold,
    ) {
        let (prev, prev_name, prev_state) = prev;
        let (next, next_name) = next;
        self.shows_followed(prev, next);
        if let Some(state) = self.cpus.get_mut(cpu) {
            state.switch(cpu, (prev, next), now, fold);
            // The threads that run next, and until when, are left out.
            if self.coverage.leaves_out(next) {
                state.current = None;
            }
        }
        let blind = self.is_blind(now);
        if !prev.is_idle() {
            let lwp = self.known(prev);
            lwp.rename(prev_name);
            lwp.switched_out(cpu, prev_state, now, fold);
            if !lwp.is_stranger() {
                fold.change(Change::LwpStops { lwp, cpu, prev_state, at: now });
            }
            // From each state to which the switch leads, but the end: what moved it on may be missing.
            if blind {
                lwp.lose(now, fold);
            }
            let has_ended = lwp.state() == State::Ended;
            if self.coverage.of_cpus
                && let Some(lwp) = self.lwps.get_mut(prev)
            {
                self.programs.loses_sight(lwp, now, fold);
            }
            if has_ended {
                self.bury(prev, now, fold);
            }
        }
        if !next.is_idle() {
            let lwp = self.known(next);
            lwp.rename(next_name);
            lwp.switched_in(cpu, now, fold);
            if !lwp.is_stranger() {
                fold.change(Change::LwpRuns { lwp, cpu, at: now });
            }
            if let Carries::Thread(key) = lwp.carries
                && lwp.carried_to.replace(cpu) != Some(cpu)
            {
                self.programs.arrives(key, cpu);
            }
        }
    }
}
