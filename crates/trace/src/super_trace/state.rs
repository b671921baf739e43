//! The super-trace's state: CPUs, LWPs and user threads, moved on by each event.
//!
//! It starts without knowing anything and believes no more than the events say: what a missing event makes
//! doubtful becomes unknown time of those concerned, and the rest stays. Memory grows with the LWPs and user
//! threads that live, and the CPUs.

use super::activity::TaskState;
use super::activity::{Activity, Context, Interrupt, Kind, Scope};
use super::calls::Calls;
use super::comm;
use super::coverage::{Coverage, Interrupts};
use super::cpu::CpuState;
use super::doing::{Mode, Waker};
use super::fold::{Change, Fold};
use super::lwp::{Carries, Dumped, Lwp, Program, Sight, State};
use super::map::Map;
use super::numbers::Numbers;
use super::programs::Programs;
use super::serial::LwpSerial;
use super::user_thread::Owner;
use tracewing_units::{Cpu, Duration, Pid, Tid, Timestamp};

/// How the names of the kernel's stoppers begin, one for each CPU, with its number after it
/// (`kernel/stop_machine.c`).
const STOPPER: &str = "migration/";

/// The state of a machine at a moment of a recording.
#[derive(Debug)]
pub struct SuperTrace {
    pub(super) lwps: Numbers<Tid, Lwp>,
    /// How many there have been.
    serials: usize,
    pub(super) programs: Programs,
    /// Threads that were dumped and not met so far.
    pub(super) dumped: Map<Tid, Dumped>,
    /// Names of processes whose first thread has ended before others.
    pub(super) headless: Map<Pid, String>,
    pub(super) cpus: Numbers<Cpu, CpuState>,
    begin: Option<Timestamp>,
    now: Timestamp,
    /// Until then, something may have happened on some CPU that was lost.
    blind_until: Timestamp,
    /// Whether switches are missing without having been lost: the recording follows some threads only.
    partial: bool,
    pub(super) coverage: Coverage,
    /// The process whose tree it is of, as long as its first thread has not been seen.
    pub(super) root: Option<Pid>,
    /// Whether any thread is one that the recording follows.
    follows: bool,
    /// How many of those that have ended had [`Lwp::lacks_calls`].
    without_calls: u64,
}

impl Default for SuperTrace {
    fn default() -> Self {
        Self::new(Coverage::default())
    }
}

impl SuperTrace {
    /// A state of which nothing is known, of a recording that can know so much.
    pub fn new(coverage: Coverage) -> Self {
        Self {
            lwps: Numbers::default(),
            serials: 0,
            programs: Programs::new(&coverage),
            dumped: Map::default(),
            headless: Map::default(),
            cpus: Numbers::default(),
            begin: None,
            now: Timestamp::MIN,
            blind_until: Timestamp::MIN,
            partial: false,
            root: coverage.root,
            coverage,
            follows: false,
            without_calls: 0,
        }
    }

    /// What the recording can know.
    pub fn coverage(&self) -> &Coverage {
        &self.coverage
    }

    /// What user threads of an origin are called, if that was told.
    pub fn origin_name(&self, origin: u64) -> Option<&str> {
        self.programs.origin_name(origin)
    }

    /// From the first event to the last.
    pub fn duration(&self) -> Duration {
        self.now - self.begin.unwrap_or(self.now)
    }

    /// Whether the recording follows some LWPs only ([`Lwp::followed`]), and met the others beside them.
    pub fn is_partial(&self) -> bool {
        self.partial || !self.coverage.switches || self.coverage.of_lwps.is_some()
    }

    /// CPUs whose switches away from their idle threads are missing, and were not lost: the machine's kernel
    /// does not tell of them, or the recording follows some LWPs only. Since when others run there is not
    /// known.
    pub fn idle_untold(&self) -> Vec<Cpu> {
        let mut cpus: Vec<Cpu> =
            self.cpus.iter().filter(|(_, cpu)| cpu.hides_idle()).map(|(number, _)| number).collect();
        cpus.sort_unstable();
        cpus
    }

    /// How many LWPs had programs whose system calls the kernel does not record, as far as anybody knows
    /// ([`Lwp::lacks_calls`]).
    pub fn without_calls(&self) -> u64 {
        self.without_calls + self.lwps.values().map(|lwp| u64::from(lwp.lacks_calls())).sum::<u64>()
    }

    /// Whether events show of any LWP that the recording follows it ([`Lwp::followed`]).
    pub fn follows_any(&self) -> bool {
        self.follows
    }

    /// Takes the next event, and tells `fold` what has come to an end.
    pub fn event(&mut self, event: &Activity<'_>, fold: &mut impl Fold) {
        self.now = self.now.max(event.time);
        let begin = *self.begin.get_or_insert(event.time);
        let now = event.time;
        let tid = event.tid.or_else(|| self.cpus.get(event.cpu?)?.current);
        if self.coverage.begin.is_some_and(|begin| now < begin) && self.is_told_before(tid, &event.kind) {
            return;
        }
        if let (Kind::InterruptExit(interrupt), Some(cpu)) = (event.kind, event.cpu) {
            let state = self.cpus.at(cpu, || CpuState::since(begin));
            let began = state.exit(cpu, interrupt, now, fold);
            if let Some(lwp) = state.current.and_then(|tid| self.lwps.get_mut(tid)) {
                match (began, state.interrupt()) {
                    (true, Some(outer)) => lwp.interrupted(outer, now, fold),
                    (true, None) => lwp.resumes(true, now, fold),
                    (false, None) => lwp.was_interrupted(now, fold),
                    (false, Some(_)) => {}
                }
            }
        }
        if let (Some(tid), Some(cpu)) = (tid, event.cpu) {
            match event.kind {
                // Of another CPU, perhaps, of whose switches nothing is known: it is there for the name.
                Kind::Exec { file } if self.coverage.of_cpus => {
                    self.executes(tid, program_name(file), now, fold)
                }
                Kind::NewTask { .. } | Kind::Fork { .. } if self.coverage.of_cpus => {}
                Kind::Kernel if self.cpus.get(cpu).is_some_and(|cpu| cpu.is_left_by(tid)) => {}
                _ => self.seen(tid, cpu, now, &event.kind, fold),
            }
            self.belongs(tid, event.process, now, fold);
        }
        match (event.kind, event.cpu) {
            (Kind::Switch { prev, prev_name, prev_state, next, next_name }, Some(cpu)) => {
                // Else it has been seen there already.
                if tid != Some(prev) || !self.coverage.switches {
                    self.takes_over(prev, cpu, now, fold);
                    self.has_cpu(prev, cpu, now, fold);
                }
                self.switch(cpu, now, (prev, prev_name, prev_state), (next, next_name), fold);
            }
            (Kind::Waking { tid, name }, _) => self.woken((tid, name), event, fold, Lwp::waking),
            (Kind::Wakeup { tid, name }, _) => self.woken((tid, name), event, fold, Lwp::wakeup),
            (Kind::Fork { child, name }, _) => {
                // Whether it is a process or a thread of one, a fork alone does not say; the new task just
                // before it did.
                if !self.lwps.get(child).is_some_and(Lwp::is_newborn) {
                    self.bury(child, now, fold);
                }
                self.created(child, now).rename(name);
            }
            (Kind::NewTask { child, same_process }, _) => {
                let creator = tid.and_then(|tid| self.lwps.get(tid));
                let (mode, is_kernel, calls) = creator
                    .map_or((Mode::Unknown, false, Calls::default()), |lwp| {
                        (lwp.mode(), lwp.is_kernel, lwp.calls.of_child())
                    });
                let process =
                    if same_process { creator.and_then(|lwp| lwp.process) } else { Some(child.as_process()) };
                let created = self.created(child, now);
                created.process = process.or(created.process);
                created.calls = calls;
                created.inherit(mode, is_kernel);
            }
            (Kind::Dump { tid, process, name, is_kernel }, _) => {
                let dumped = Dumped { process: Some(process), name: name.to_owned(), is_kernel };
                match self.lwps.get_mut(tid) {
                    Some(lwp) => lwp.introduce(&dumped),
                    None => drop(self.dumped.insert(tid, dumped)),
                }
            }
            (Kind::Asleep { tid, call }, _) => {
                let lwp = self.known(tid);
                lwp.records();
                lwp.found_asleep(call, now, fold);
                self.follows = true;
            }
            (Kind::Named { process, name }, _) => {
                if let Some(tid) = tid {
                    self.named(tid, process, name);
                }
            }
            (Kind::Made { child, process }, _) => {
                let name = tid.and_then(|tid| self.name(tid)).unwrap_or_default();
                if !self.lwps.has(child) {
                    let process = Some(process);
                    self.dumped.insert(child, Dumped { process, name, is_kernel: false });
                }
            }
            (Kind::InterruptEntry { kind, name }, Some(cpu)) => {
                let state = self.cpus.at(cpu, || CpuState::since(begin));
                let missing = state.enter(cpu, kind, name, now, fold);
                if let Some(lwp) = state.current.and_then(|tid| self.lwps.get_mut(tid)) {
                    if missing {
                        lwp.resumes(false, now, fold);
                    }
                    lwp.interrupted(name, now, fold);
                }
            }
            (Kind::Waits { on }, _) => {
                let on = on.filter(|_| !self.programs.is_blind(now));
                if let Some(lwp) = tid.and_then(|tid| self.lwps.get_mut(tid)) {
                    lwp.waits(on, now, fold);
                }
            }
            (Kind::Raise { name }, Some(cpu)) => {
                let by = self.waker(event, false);
                let by = Some(by).filter(|by| by.interrupt.is_none() && by.call.is_some());
                self.cpus.at(cpu, || CpuState::since(begin)).raise(name, by);
            }
            (Kind::UserThread(kind), cpu) => {
                if let Some(tid) = tid.filter(|tid| !tid.is_idle()) {
                    self.known(tid);
                    self.programs.event(kind, tid, cpu, (now, begin), &mut self.lwps, fold);
                }
            }
            _ => {}
        }
    }

    /// Takes what the kernel's events from before a part tell of threads: only who they are. False if it is
    /// another event.
    #[cold]
    fn is_told_before(&mut self, tid: Option<Tid>, kind: &Kind<'_>) -> bool {
        let (tid, process, name) = match *kind {
            Kind::NewTask { child, same_process: false } => (child, Some(child.as_process()), None),
            Kind::NewTask { child, .. } => (child, tid.and_then(|tid| self.process_of(tid)), None),
            Kind::Fork { child, name } => (child, self.process_of(child), Some(name)),
            Kind::Exec { file } => {
                let Some(tid) = tid else { return true };
                (tid, Some(tid.as_process()), Some(program_name(file)))
            }
            Kind::Switch { prev, prev_name, next, next_name, .. } => {
                self.was_called(prev, prev_name);
                self.was_called(next, next_name);
                return true;
            }
            _ => return false,
        };
        if process.is_some() {
            let name = name.unwrap_or_default().to_owned();
            self.dumped.insert(tid, Dumped { process, name, is_kernel: false });
        }
        true
    }

    /// A thread had this name before the part began.
    fn was_called(&mut self, tid: Tid, name: &[u8]) {
        match self.lwps.get_mut(tid) {
            Some(lwp) => lwp.rename(name),
            None if !tid.is_idle() => self.dumped.entry(tid).or_default().name = name.to_owned(),
            None => {}
        }
    }

    /// Takes a loss: events between `from` and `to` are missing.
    pub fn lost(&mut self, scope: Scope, from: Timestamp, to: Timestamp, fold: &mut impl Fold) {
        let lossy = match scope {
            Scope::Kernel(lossy) => lossy,
            Scope::User => return self.programs.lost(from, to, &mut self.lwps, fold),
            Scope::Samples => return,
        };
        self.now = self.now.max(from);
        self.blind_until = self.blind_until.max(to);
        // Who was running on another CPU cannot have been switched on this one; everybody else can.
        for lwp in self.lwps.values_mut() {
            let elsewhere =
                matches!((lwp.state(), lossy), (State::Running { cpu }, Some(lossy)) if cpu != lossy);
            if !elsewhere {
                lwp.lose(from, fold);
            }
        }
        for (number, cpu) in self.cpus.iter_mut() {
            if lossy.is_none_or(|lossy| lossy == number) {
                cpu.tell(number, from, fold);
                *cpu = CpuState::since(to);
            }
        }
    }

    /// Begins anew at `time` with what is known by now: nobody is told what lies before, and nothing has been
    /// counted yet.
    pub fn restart(&mut self, time: Timestamp) {
        self.advance(time);
        self.begin = Some(time);
        self.lwps.values_mut().for_each(|lwp| lwp.restart(time));
        self.cpus.iter_mut().for_each(|(number, cpu)| cpu.tell(number, time, &mut ()));
        self.programs.restart(time);
    }

    /// Nothing happens until `time`.
    pub fn advance(&mut self, time: Timestamp) {
        self.now = self.now.max(time);
    }

    /// Tells what has not come to an end when the recording does.
    pub fn finish(mut self, fold: &mut impl Fold) {
        for lwp in self.lwps.values_mut() {
            if self.coverage.of_lwps.is_some() {
                lwp.doubt_last_wait(self.now, fold);
            }
            lwp.tell(self.now, fold);
        }
        self.programs.finish(self.now, &mut self.lwps, fold);
        self.cpus.iter_mut().for_each(|(number, cpu)| cpu.tell(number, self.now, fold));
        for lwp in self.lwps.values() {
            fold.change(Change::LwpEnds { lwp });
        }
    }

    /// What any event says about the thread that recorded it.
    fn seen(&mut self, tid: Tid, cpu: Cpu, now: Timestamp, kind: &Kind<'_>, fold: &mut impl Fold) {
        match kind {
            Kind::Introduction { process, name } => {
                let lwp = self.known(tid);
                lwp.process = Some(*process);
                lwp.rename(name);
                self.programs.adopt(tid, *process, now, &mut self.lwps, fold);
                // That there is such a process says to which one its first thread belongs.
                if let Some(first) = self.lwps.get_mut(process.first_thread()) {
                    first.process = Some(*process);
                    self.programs.adopt(process.first_thread(), *process, now, &mut self.lwps, fold);
                }
                return;
            }
            Kind::Program { name } => {
                self.executes(tid, name, now, fold);
                return;
            }
            // What recorded it, and where, is no matter of the threads.
            Kind::Dump { .. }
            | Kind::Asleep { .. }
            | Kind::Named { .. }
            | Kind::Made { .. }
            | Kind::Aside => return,
            // It tells that there is such a thread. That it runs is for the kernel's events to say, whose
            // stamps are exact.
            Kind::Sample { .. } => {
                if !tid.is_idle() {
                    self.known(tid).records();
                }
                return;
            }
            Kind::User | Kind::UserThread(_) | Kind::Waits { .. } => {
                return self.seen_in_program(tid, now, fold);
            }
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
            self.has_cpu(tid, cpu, now, fold);
        }
        if tid.is_idle() {
            return;
        }
        let Coverage { switches, page_faults: has_faults, .. } = self.coverage;
        let lwp = self.known(tid);
        if switches {
            lwp.seen_on(cpu, now, fold);
        }
        match kind {
            Kind::SystemCall { call } => {
                lwp.begins_call(Mode::SystemCall(*call), now, fold);
                fold.change(Change::LwpCalls { lwp, call: *call, at: now });
            }
            Kind::UnendedCall { call, returns } => {
                lwp.begins_call(if *returns { Mode::User } else { Mode::Unknown }, now, fold);
                fold.change(Change::LwpCalls { lwp, call: *call, at: now });
            }
            Kind::SystemCallEnd { call } => lwp.ends_call(*call, now, fold),
            Kind::PageFault { user, high } => {
                lwp.page_faults += 1;
                if *user {
                    lwp.in_program(*high, now, fold);
                    lwp.faulted = true;
                }
                fold.change(Change::LwpFaults { lwp, at: now });
            }
            Kind::Socket => fold.change(Change::LwpUsesSocket { lwp, at: now }),
            Kind::Exit => lwp.exits(now, fold),
            Kind::Exec { file } => {
                lwp.executes_program(has_faults, now, fold);
                self.executes(tid, program_name(file), now, fold);
                return;
            }
            // Recorded beside a thread, not by it: no sign that the recording follows it.
            Kind::Switch { .. }
            | Kind::Waking { .. }
            | Kind::Wakeup { .. }
            | Kind::Raise { .. }
            | Kind::InterruptEntry { .. }
            | Kind::InterruptExit(_) => return,
            _ => {}
        }
        lwp.records();
        self.follows = true;
    }

    /// A process has another program, and one thread.
    fn executes(&mut self, tid: Tid, name: &[u8], now: Timestamp, fold: &mut impl Fold) {
        let process = tid.as_process();
        self.programs.ends(Owner::process(process), now, &mut self.lwps, fold);
        self.follows = true;
        let lwp = self.known(tid);
        (lwp.process, lwp.is_kernel) = (Some(process), false);
        lwp.records();
        lwp.program = Program { number: lwp.program.number + 1, since: now };
        lwp.rename(name);
    }

    /// What the event itself says about the process of the thread that recorded it.
    fn belongs(&mut self, tid: Tid, process: Option<Pid>, now: Timestamp, fold: &mut impl Fold) {
        if let Some(process) = process
            && let Some(lwp) = self.lwps.get_mut(tid)
            && lwp.process.replace(process) != Some(process)
        {
            self.programs.adopt(tid, process, now, &mut self.lwps, fold);
        }
    }

    /// An event of its program tells that a thread runs, but not where: some tracers let a thread write into
    /// the buffer of a CPU that it has just left.
    fn seen_in_program(&mut self, tid: Tid, now: Timestamp, fold: &mut impl Fold) {
        self.follows = true;
        let lwp = self.known(tid);
        lwp.user_events += 1;
        lwp.records();
        let Some(cpu) = lwp.cpu() else {
            return lwp.does_not_wait(now, fold);
        };
        lwp.resumes(false, now, fold);
        lwp.in_program(true, now, fold);
        if let Some(cpu) = self.cpus.get_mut(cpu) {
            cpu.drop_interrupts(now);
        }
    }

    /// A thread, not an interrupt, does something on a CPU.
    fn has_cpu(&mut self, tid: Tid, cpu: Cpu, now: Timestamp, fold: &mut impl Fold) {
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
    fn takes_over(&mut self, tid: Tid, cpu: Cpu, now: Timestamp, fold: &mut impl Fold) {
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
            if let Some(lwp) = self.lwps.get_mut(before)
                && lwp.state() == (State::Running { cpu })
            {
                lwp.doubt(now, fold);
            }
        }
    }

    /// A thread that executes a program while it is not its process' first one gets that one's number, which
    /// has ended by then (`de_thread` of the kernel's `fs/exec.c`). Whether this is what happened.
    fn takes_first_number(&mut self, tid: Tid, first: Tid) -> bool {
        let process = first.as_process();
        let is_so = !tid.is_idle()
            && self.headless.contains_key(&process)
            && !self.lwps.has(first)
            && self.lwps.get(tid).is_some_and(|lwp| lwp.process == Some(process));
        if is_so && let Some(mut lwp) = self.lwps.remove(tid) {
            self.headless.remove(&process);
            lwp.tid = first;
            self.lwps.add(first, lwp);
        }
        is_so
    }

    fn switch(
        &mut self,
        cpu: Cpu,
        now: Timestamp,
        prev: (Tid, &[u8], TaskState),
        next: (Tid, &[u8]),
        fold: &mut impl Fold,
    ) {
        let (prev, prev_name, prev_state) = prev;
        let (next, next_name) = next;
        if let Some(state) = self.cpus.get_mut(cpu) {
            state.switch(cpu, (prev, next), now, fold);
            // Who has it next, and until when, is left out.
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

    fn woken<F: Fold>(
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
        if self.is_blind(now) {
            let lwp = self.known(tid);
            if !matches!(lwp.state(), State::Running { .. }) {
                lwp.lose(now, fold);
            }
        }
    }

    /// Who does what an event of the kernel tells; `by_thread` if no interrupt does such a thing.
    fn waker(&self, event: &Activity<'_>, by_thread: bool) -> Waker {
        let cpu = event.cpu.and_then(|cpu| self.cpus.get(cpu));
        let interrupt = match event.context {
            Context::Unknown => cpu.and_then(CpuState::interrupt),
            Context::Thread => None,
            Context::Softirq(general) => Some(cpu.and_then(CpuState::softirq).unwrap_or(general)),
            Context::Interrupt(general) => Some(cpu.and_then(CpuState::hard_interrupt).unwrap_or(general)),
        };
        if let Some(interrupt) = interrupt {
            let raiser = cpu.and_then(|cpu| cpu.raiser(interrupt));
            let raiser = raiser.unwrap_or_else(|| Waker::unknown(event.cpu));
            return Waker { interrupt: Some(interrupt), ..raiser };
        }
        let by_thread = by_thread || event.context == Context::Thread;
        let tid = event.tid.or_else(|| cpu?.current);
        match tid.and_then(|tid| self.lwps.get(tid)) {
            Some(lwp) if by_thread || self.has_interrupts_of(lwp) => self.programs.waker(lwp, event.cpu),
            // It is the CPU's idle thread, which tells no less: it does nothing itself.
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

    /// The kernel tells a thread's name beside its other events, or without any.
    fn named(&mut self, tid: Tid, process: Pid, name: &[u8]) {
        match self.lwps.get_mut(tid) {
            Some(lwp) => {
                lwp.process = Some(process);
                lwp.rename(name);
            }
            None => {
                let process = Some(process);
                let dumped = Dumped { process, name: name.to_owned(), is_kernel: false };
                self.dumped.insert(tid, dumped);
            }
        }
    }

    /// A thread's name, as far as it is known.
    fn name(&self, tid: Tid) -> Option<Vec<u8>> {
        let met = self.lwps.get(tid).map(|lwp| lwp.name.clone().into_bytes());
        met.or_else(|| Some(self.dumped.get(&tid)?.name.clone()))
    }

    /// Whether events of the kernel may be missing at this time.
    fn is_blind(&self, now: Timestamp) -> bool {
        self.coverage.of_cpus || now < self.blind_until
    }

    /// When it is known what a thread does, of which nothing was known so far.
    fn sight(&self, tid: Tid) -> Sight {
        if self.coverage.leaves_out(tid) {
            return Sight::Stranger;
        }
        match self.coverage.switches {
            false => Sight::Never,
            true if self.coverage.of_user_threads.is_empty() => Sight::Always,
            true => Sight::WithThread { chosen: false },
        }
    }

    fn known(&mut self, tid: Tid) -> &mut Lwp {
        let place = match self.lwps.place(tid) {
            Some(place) => place,
            None => self.meets(tid),
        };
        self.lwps.in_place(place)
    }

    /// A thread of which nothing was known so far, apart from dumps.
    #[cold]
    fn meets(&mut self, tid: Tid) -> usize {
        let begin = self.begin.unwrap_or(self.now);
        let place = self.add(Lwp::new(LwpSerial(self.serials), tid, begin));
        if let Some(dumped) = self.dumped.remove(&tid) {
            self.lwps.in_place(place).introduce(&dumped);
        }
        place
    }

    /// A thread that was created now, so that no earlier dump can mean it.
    fn created(&mut self, tid: Tid, now: Timestamp) -> &mut Lwp {
        self.dumped.remove(&tid);
        self.root.take_if(|root| root.first_thread() == tid);
        self.headless.remove(&tid.as_process());
        let place = match self.lwps.place(tid) {
            Some(place) => place,
            // Where events are missing, it may have been woken and run.
            None if self.is_blind(now) => self.add(Lwp::new(LwpSerial(self.serials), tid, now)),
            None => self.add(Lwp::created(LwpSerial(self.serials), tid, now)),
        };
        self.lwps.in_place(place)
    }

    fn add(&mut self, mut lwp: Lwp) -> usize {
        let chosen = self.coverage.of_lwps.as_ref().and_then(|lwps| lwps.get(&lwp.tid).copied());
        (lwp.sight, lwp.tells_modes) = (self.sight(lwp.tid), self.coverage.system_calls);
        (lwp.followed, lwp.process) = (chosen.is_some(), chosen.flatten());
        if let Some(root) = self.root.take_if(|root| root.first_thread() == lwp.tid) {
            lwp.records();
            lwp.process = Some(root);
        }
        self.serials += 1;
        self.lwps.add(lwp.tid, lwp)
    }

    /// The thread is gone, or its number belongs to another one now.
    fn bury(&mut self, tid: Tid, now: Timestamp, fold: &mut impl Fold) {
        let Some(mut lwp) = self.lwps.remove(tid) else { return };
        self.without_calls += u64::from(lwp.lacks_calls());
        lwp.tell(now, fold);
        self.programs.detach(&mut lwp, fold);
        fold.change(Change::LwpEnds { lwp: &lwp });
        let lives_on = |process: Pid| self.lwps.values().any(|other| other.process == Some(process));
        if lwp.process == Some(tid.as_process()) && lives_on(tid.as_process()) {
            self.headless.insert(tid.as_process(), std::mem::take(&mut lwp.name));
        }
        let owner = Owner::of(lwp.process, tid);
        if self.programs.has(owner) && !lwp.process.is_some_and(lives_on) {
            self.programs.ends(owner, now, &mut self.lwps, fold);
        }
    }
}

/// What the kernel calls a thread that executes a file.
fn program_name(file: &[u8]) -> &[u8] {
    let name = file.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    &name[..name.len().min(comm::LONGEST)]
}
