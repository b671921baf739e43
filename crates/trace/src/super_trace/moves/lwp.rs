//! How an LWP moves from state to state: one method per kind of event, with every state that it may find.
//!
//! It starts in `Unknown`. Only an event that fixes its state moves it on. Where an event finds a state from
//! which nothing leads to it, events are missing: the state is believed up to the last event that fits it,
//! and time since then is unknown (`doubt`). The mode is doubted by itself. `docs/explanation/state.md` draws
//! the states.

use crate::super_trace::activity::{Name, TaskState};
use crate::super_trace::doing::{Doing, Mode};
use crate::super_trace::fold::{Change, Fold};
use crate::super_trace::lwp::{Lwp, Sight, State};
use tracewing_units::{Cpu, Timestamp};

/// So many interrupts within one wait for its end.
const INTERRUPTS: usize = 1000;

impl Lwp {
    /// The recording ends. Its waker may be outside of the extract, so whether it still waits is unknown.
    pub(in crate::super_trace) fn doubt_last_wait(&mut self, now: Timestamp, fold: &mut impl Fold) {
        // Blocked: a wake-up by an LWP that the extract leaves out is missing. All other states end with
        // events of its own.
        if let State::Blocked { .. } = self.state {
            self.doubt(now, fold);
        }
    }

    /// It recorded something on a CPU, so it runs there.
    pub(in crate::super_trace) fn seen_on(&mut self, cpu: Cpu, now: Timestamp, fold: &mut impl Fold) {
        match self.state {
            // Running here: the event fits.
            State::Running { cpu: known } if known == cpu => self.confirmed = self.confirmed.max(now),
            // Unknown: the first event that fixes it.
            State::Unknown => self.enter(State::Running { cpu }, now, fold),
            // Running elsewhere, or off CPUs: the switch that brought it here is missing.
            State::Running { .. } | State::Runnable { .. } | State::Blocked { .. } => {
                self.doubt(now, fold);
                self.enter(State::Running { cpu }, now, fold);
            }
            // Ended: what the kernel records between the last switch and the next thread has its number
            // still.
            State::Ended => {}
        }
        self.arrive(cpu);
    }

    /// It runs somewhere: if it was thought to wait, events are missing.
    pub(in crate::super_trace) fn does_not_wait(&mut self, now: Timestamp, fold: &mut impl Fold) {
        match self.state {
            // Off CPUs: the switch to it is missing.
            State::Runnable { .. } | State::Blocked { .. } => self.doubt(now, fold),
            // Running: it does not wait. Unknown stays so: the event reports neither where it runs nor since
            // when. Ended: it is over.
            State::Running { .. } | State::Unknown | State::Ended => {}
        }
    }

    /// It gets a CPU.
    pub(in crate::super_trace) fn switched_in(&mut self, cpu: Cpu, now: Timestamp, fold: &mut impl Fold) {
        match self.state {
            // Runnable: the only state from which a switch leads here. Unknown: the first event that fixes
            // it.
            State::Runnable { .. } | State::Unknown => {}
            // Running: the switch away is missing. Blocked: the wake-up is. Ended: the number belongs to
            // another thread, whose creation is missing.
            State::Running { .. } | State::Blocked { .. } | State::Ended => self.doubt(now, fold),
        }
        self.enter(State::Running { cpu }, now, fold);
        self.arrive(cpu);
    }

    /// It leaves a CPU, in one of the kernel's states (`TASK_REPORT` of `include/linux/sched.h`).
    pub(in crate::super_trace) fn switched_out(
        &mut self,
        cpu: Cpu,
        left_in: TaskState,
        now: Timestamp,
        fold: &mut impl Fold,
    ) {
        match self.state {
            // Running here: the only state that a switch can leave. Unknown: the earlier state remains
            // unknown.
            State::Running { cpu: known } if known == cpu => {}
            State::Unknown => {}
            // Running elsewhere, off CPUs, or over: the switch to it is missing.
            State::Running { .. } | State::Runnable { .. } | State::Blocked { .. } | State::Ended => {
                self.doubt(now, fold);
            }
        }
        self.arrive(cpu);
        self.switches += 1;
        // From every state: the kernel's own state determines the next one, and the switch itself proves it.
        // It could continue: it waits for a CPU. It is dead: its end. It sleeps, or is stopped: it waits for
        // something else.
        if left_in.could_continue() {
            self.preemptions += 1;
            self.enter(State::Runnable { preempted: true }, now, fold);
        } else if left_in.is_dead() {
            self.dies(now, fold);
            self.enter(State::Ended, now, fold);
        } else {
            self.sleeps(left_in, now, fold);
            self.enter(State::Blocked { woken_before: self.waking }, now, fold);
        }
    }

    /// A waking: it is asked to run. True, as it counts.
    pub(in crate::super_trace) fn waking(&mut self, now: Timestamp, fold: &mut impl Fold) -> bool {
        self.wakeups += 1;
        self.waking = true;
        match self.state {
            // Blocked: what it waited for is over. Unknown: a thread that is woken is ready, whatever it did.
            State::Blocked { .. } | State::Unknown => {
                self.enter(State::Runnable { preempted: false }, now, fold);
            }
            // Woken already: it has slept again since, and the events are missing.
            State::Runnable { preempted: false } => {
                self.doubt(now, fold);
                self.enter(State::Runnable { preempted: false }, now, fold);
            }
            // Running, or preempted: it was about to sleep, and stays awake. Ended: the event refers to the
            // next thread with this number.
            State::Running { .. } | State::Runnable { preempted: true } | State::Ended => {}
        }
        true
    }

    /// It has become runnable. Whether that counts: the waking before it has been counted.
    pub(in crate::super_trace) fn wakeup(&mut self, now: Timestamp, fold: &mut impl Fold) -> bool {
        let counts = !std::mem::replace(&mut self.waking, false);
        self.wakeups += u64::from(counts);
        let runnable = State::Runnable { preempted: false };
        match self.state {
            // Blocked after a wake: the waker came while it was about to sleep, so it only ever waited for a
            // CPU.
            State::Blocked { woken_before: true } => {
                self.state = runnable;
                self.enter(runnable, now, fold);
            }
            // Blocked without one: the waking is not recorded, or lost. Unknown: as with a waking.
            State::Blocked { woken_before: false } | State::Unknown => self.enter(runnable, now, fold),
            // Runnable since the waking before it; running, as that came early; ended: the number's next
            // thread.
            State::Running { .. } | State::Runnable { .. } | State::Ended => {}
        }
        counts
    }

    /// It has slept since before its events were recorded, in `call` where that is known.
    pub(in crate::super_trace) fn found_asleep(
        &mut self,
        call: Option<Name>,
        now: Timestamp,
        fold: &mut impl Fold,
    ) {
        match self.state {
            // Unknown: the first sign of it.
            State::Unknown => {
                self.enter(State::Blocked { woken_before: false }, now, fold);
                // From every mode, which is unknown as well: no event of its own has come.
                if let Some(call) = call {
                    self.enter_mode(Mode::SystemCall(call), now, fold);
                    self.mode_settled = true;
                }
            }
            // All others: its own events say more.
            State::Running { .. } | State::Runnable { .. } | State::Blocked { .. } | State::Ended => {}
        }
    }

    /// It begins a system call, and is in this mode afterwards.
    pub(in crate::super_trace) fn begins_call(&mut self, mode: Mode, now: Timestamp, fold: &mut impl Fold) {
        self.system_calls += 1;
        self.calls.confirm();
        self.settle_mode(Mode::User, now, fold);
        // In its program, or unknown: where calls begin. In a call: these do not nest, so the end of the one
        // before is missing.
        if let Mode::SystemCall(_) = self.mode {
            self.doubt_mode(now, fold);
        }
        // From every mode: the event itself proves the call, or that the program continues right after it.
        self.enter_mode(if mode == Mode::User { self.mode_of_program() } else { mode }, now, fold);
    }

    /// It ends a system call.
    pub(in crate::super_trace) fn ends_call(&mut self, call: Name, now: Timestamp, fold: &mut impl Fold) {
        self.calls.confirm();
        self.settle_mode(Mode::SystemCall(call), now, fold);
        // In this call: the only mode that its end leaves. In its program, in another call, or unknown: the
        // beginning of this one is missing.
        if self.mode != Mode::SystemCall(call) {
            self.doubt_mode(now, fold);
        }
        // From every mode: after a call comes the program.
        self.executes = false;
        self.enter_mode(self.mode_of_program(), now, fold);
    }

    /// According to its mode, it sleeps outside of any recorded call.
    fn sleeps(&mut self, left_in: TaskState, now: Timestamp, fold: &mut impl Fold) {
        // In a call: that is where threads sleep. Unknown: it may be in one. Modes that are not reported at
        // all cannot be contradicted.
        if self.mode != Mode::User || !self.reports_modes {
            return;
        }
        // All from its program.
        match left_in {
            // It waits for the page. That takes as many sleeps as the kernel likes.
            TaskState::UNINTERRUPTIBLE if self.faulted => {}
            // It closes files after the end of a call, or works for its io_uring.
            TaskState::UNINTERRUPTIBLE => self.doubt_mode(now, fold),
            // Another process or a device may provide the page, if nothing else came between.
            TaskState::SLEEPING if self.faulted && self.since <= self.mode_confirmed => {
                self.doubt_mode(now, fold);
            }
            // Only a call sleeps like that.
            TaskState::SLEEPING => self.hides_calls(now, fold),
            // All others: a signal stops it, or a debugger does, which can come in its program.
            _ => {}
        }
    }

    /// Its end is in the kernel. If it was in its program before, `sched_process_exit` is missing: when a
    /// signal, or its process' end, took it out of there, is unknown, and so is how often it was preempted
    /// since.
    fn dies(&mut self, now: Timestamp, fold: &mut impl Fold) {
        // In a call, or unknown: nothing contradicts that it has ended there.
        if self.mode == Mode::User && self.reports_modes {
            self.report(now, fold);
            self.dies_unseen = true;
            fold.change(Change::LwpHidesCalls { lwp: self });
        }
    }

    /// It is in a call that is not recorded, although it was thought to be in its program.
    fn hides_calls(&mut self, now: Timestamp, fold: &mut impl Fold) {
        self.doubt_mode(now, fold);
        (self.mode_settled, self.executes) = (true, false);
        self.calls.hide();
        fold.change(Change::LwpHidesCalls { lwp: self });
    }

    /// It executes a program; whether the recording has page faults of programs, of which each new one has
    /// some at once.
    pub(in crate::super_trace) fn executes_program(
        &mut self,
        has_faults: bool,
        now: Timestamp,
        fold: &mut impl Fold,
    ) {
        match self.mode {
            // In its program: only a call executes another one, and none is recorded.
            Mode::User if self.reports_modes => self.hides_calls(now, fold),
            // In the call that executes it, whose end is not recorded if the new program's calls are not: up
            // to the next sign of the mode, it may have left the call.
            Mode::SystemCall(_) if !has_faults => {
                self.report(now, fold);
                (self.executes, self.mode_confirmed) = (true, now);
            }
            // In that call, where the new program's first page fault shows that it has left: it stays in it.
            // Unknown: it stays so up to the next sign. In its program, where modes are not reported: nothing
            // is contradicted. An interrupt is never a mode of its own here.
            Mode::SystemCall(_) | Mode::Unknown | Mode::User | Mode::Interrupt(_) => {}
        }
        self.calls.execute();
    }

    /// It ends: it never returns to its program. Where no switch says when it leaves its CPU for the last
    /// time, that was its end.
    pub(in crate::super_trace) fn exits(&mut self, now: Timestamp, fold: &mut impl Fold) {
        // From every state, as none of them follows switches here: no other event will report the end.
        if self.sight == Sight::Never {
            return self.enter(State::Ended, now, fold);
        }
        // Otherwise its state stays: it works on its end until its last switch. Its mode: from its program, a
        // signal has taken it to the kernel for good, in no call. In a call, it stays in that one (`exit`);
        // unknown stays so.
        if self.mode == Mode::User {
            self.enter_mode(Mode::Unknown, now, fold);
        }
    }

    /// Where it is after a sign that it returns to its program.
    fn mode_of_program(&self) -> Mode {
        if self.calls.are_recorded() { Mode::User } else { Mode::Unknown }
    }

    /// Its program reports that it waits for this from now on, or no longer waits.
    pub(in crate::super_trace) fn waits(&mut self, on: Option<Name>, now: Timestamp, fold: &mut impl Fold) {
        self.report(now, fold);
        self.waits_for = on;
    }

    /// It runs user code; `is_recorded`: the kernel records its system calls.
    pub(in crate::super_trace) fn in_program(
        &mut self,
        is_recorded: bool,
        now: Timestamp,
        fold: &mut impl Fold,
    ) {
        self.faulted = false;
        if is_recorded {
            self.calls.confirm();
        }
        // Where its calls may not be recorded, it may be in one again at once, so the sign fixes no mode. In
        // a call: the end of that is missing. In its program, or unknown: it stays so.
        if !self.calls.run() {
            if let Mode::SystemCall(_) = self.mode {
                self.doubt_mode(now, fold);
            }
            return;
        }
        self.settle_mode(Mode::User, now, fold);
        match self.mode {
            // In its program: the event fits.
            Mode::User => self.mode_confirmed = self.mode_confirmed.max(now),
            // In a system call: its end is missing.
            Mode::SystemCall(_) => {
                self.doubt_mode(now, fold);
                self.enter_mode(Mode::User, now, fold);
            }
            // Unknown: the first event that fixes it. An interrupt is never a mode of its own here
            // ([`Lwp::interrupted`]).
            Mode::Unknown | Mode::Interrupt(_) => self.enter_mode(Mode::User, now, fold),
        }
    }

    /// An interrupt takes its CPU, or has it back from one within it.
    pub(in crate::super_trace) fn interrupted(&mut self, by: Name, now: Timestamp, fold: &mut impl Fold) {
        match self.interrupted {
            // Interrupted already: the inner one takes over, and what the outer one took is reported at the
            // end of all.
            Some(before) if self.interrupts.len() < INTERRUPTS => self.interrupts.push((before, now)),
            // Not interrupted, or too deep: what it did so far ends here; its state stays.
            None | Some(_) => self.enter(self.state, now, fold),
        }
        self.interrupted = Some(by);
    }

    /// It has its CPU back: now if `seen`; otherwise since an unknown earlier time.
    pub(in crate::super_trace) fn resumes(&mut self, seen: bool, now: Timestamp, fold: &mut impl Fold) {
        // Not interrupted: it has its CPU already, or runs on none.
        if self.interrupted.is_none() {
            return;
        }
        match (seen, self.cpu()) {
            // The end is seen: the interrupt lasted until now.
            (true, _) => self.report(now, fold),
            // The end is missing: it is on its CPU, but its mode is unknown. Off CPUs, its state is known.
            (false, Some(cpu)) => self.cut(Doing::Running { cpu, mode: Mode::Unknown }, now, fold),
            (false, None) => {}
        }
        self.clear_interrupts();
    }

    /// An interrupt ends whose beginning is missing: since the last event either the thread or the interrupt
    /// ran.
    pub(in crate::super_trace) fn end_unbegun_interrupt(&mut self, now: Timestamp, fold: &mut impl Fold) {
        // Running: it or the interrupt did, since the last event. Off CPUs, over, or unknown: the interrupt
        // took nothing from it.
        let Some(cpu) = self.cpu() else { return };
        self.enter(self.state, self.confirmed.min(now), fold);
        self.cut(Doing::Running { cpu, mode: Mode::Unknown }, now, fold);
        // What began within that interrupt has ended before, unseen.
        self.clear_interrupts();
    }

    /// Its state is no longer known from `from` on.
    pub(in crate::super_trace) fn lose(&mut self, from: Timestamp, fold: &mut impl Fold) {
        // From all states but the last one: what is missing may have moved it anywhere.
        if self.state != State::Ended {
            self.enter(State::Unknown, from, fold);
            self.clear_interrupts();
            self.calls.doubt();
            (self.mode, self.mode_settled, self.executes) = (Mode::Unknown, true, false);
        }
    }

    /// What lies before `time` counts no longer.
    pub(in crate::super_trace) fn restart(&mut self, time: Timestamp) {
        self.report(time, &mut ());
        (self.switches, self.preemptions, self.migrations, self.wakeups) = (0, 0, 0, 0);
        (self.system_calls, self.page_faults, self.user_events, self.polls) = (0, 0, 0, 0);
    }

    /// Reports its state up to now.
    pub(in crate::super_trace) fn report(&mut self, now: Timestamp, fold: &mut impl Fold) {
        if let Some(cpu) = self.cpu().filter(|_| !self.interrupts.is_empty()) {
            for (by, to) in std::mem::take(&mut self.interrupts) {
                self.cut(Doing::Running { cpu, mode: Mode::Interrupt(Some(by)) }, to, fold);
            }
        }
        self.cut(self.doing(), now, fold);
    }

    /// No interrupt occupies its CPU any more.
    fn clear_interrupts(&mut self) {
        self.interrupted = None;
        self.interrupts.clear();
    }

    /// What the state says cannot be true up to now: it is believed only up to its last confirmation.
    pub(in crate::super_trace) fn doubt(&mut self, now: Timestamp, fold: &mut impl Fold) {
        let confirmed = self.confirmed.max(self.since).min(now);
        // From the states that the caller names. Up to the last event that fits, the state is believed; from
        // then on until now, nothing is.
        self.resumes(false, confirmed, fold);
        self.enter(State::Unknown, confirmed, fold);
        self.enter(State::Unknown, now, fold);
    }

    /// An event proves that it was in this mode up to now, if it was in one mode only.
    fn settle_mode(&mut self, mode: Mode, now: Timestamp, fold: &mut impl Fold) {
        // Its program may have made unrecorded calls in between, which the event does not rule out.
        if mode == Mode::User && !self.calls.are_recorded() {
            return;
        }
        if !std::mem::replace(&mut self.mode_settled, true) {
            self.report(now, fold);
            if self.reports_modes {
                fold.change(Change::LwpWas { lwp: self, mode });
            }
        }
    }

    /// The mode is believed only up to its last confirmation, whichever it is.
    fn doubt_mode(&mut self, now: Timestamp, fold: &mut impl Fold) {
        self.report(self.mode_confirmed.min(now), fold);
        (self.mode, self.executes) = (Mode::Unknown, false);
    }

    fn enter_mode(&mut self, mode: Mode, now: Timestamp, fold: &mut impl Fold) {
        self.report(now, fold);
        (self.mode, self.mode_confirmed, self.faulted) = (mode, now, false);
    }

    fn arrive(&mut self, cpu: Cpu) {
        if self.last_cpu.is_some_and(|last| last != cpu) {
            self.migrations += 1;
        }
        self.last_cpu = Some(cpu);
    }

    fn enter(&mut self, state: State, now: Timestamp, fold: &mut impl Fold) {
        self.report(now, fold);
        self.confirmed = self.confirmed.max(now);
        self.state = state;
    }

    #[inline]
    fn cut(&mut self, doing: Doing, now: Timestamp, fold: &mut impl Fold) {
        // Stamps of different CPUs may be out of step by less than a microsecond: no time passes then.
        let now = now.max(self.since);
        let doing = if self.is_out_of_sight() { Doing::Unknown } else { doing };
        if self.state != State::Ended {
            fold.change(Change::LwpDid { lwp: self, doing, from: self.since, to: now });
        }
        self.since = now;
    }
}
