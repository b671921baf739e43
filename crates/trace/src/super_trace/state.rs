//! The super-trace's state: CPUs, LWPs and user threads, moved on by each event.
//!
//! It starts without knowing anything and believes no more than the events say: what a missing event makes
//! doubtful becomes unknown time of those concerned, and the rest stays. Memory grows with the LWPs and user
//! threads that live, and the CPUs; a few bytes are kept of each LWP that has ended.

use super::activity::{Activity, Kind, Scope};
use super::coverage::Coverage;
use super::cpu::CpuState;
use super::fold::{Change, Fold};
use super::lwp::{Dumped, Lwp, State};
use super::map::Map;
use super::numbers::Numbers;
use super::programs::Programs;
use population::program_name;
use tracewing_units::{Cpu, Duration, Origin, Pid, Tid, Timestamp};

mod population;
mod running;
mod wakes;

/// The state of a machine at a moment of a recording.
#[derive(Debug, Clone)]
pub struct SuperTrace {
    pub(super) lwps: Numbers<Tid, Lwp>,
    /// How many there have been.
    pub(super) serials: usize,
    pub(super) programs: Programs,
    /// Threads from state dumps that have not been seen otherwise so far.
    pub(super) dumped: Map<Tid, Dumped>,
    /// Names of processes whose first thread has ended before others.
    pub(super) headless: Map<Pid, String>,
    /// Numbers of followed threads that have ended, where the kernel has a list of those that it follows: it
    /// may record switches of another thread with such a number.
    pub(super) ended: Map<Tid, ()>,
    pub(super) cpus: Numbers<Cpu, CpuState>,
    pub(super) begin: Option<Timestamp>,
    pub(super) now: Timestamp,
    /// The latest stamp of an event.
    pub(super) latest: Timestamp,
    /// Whether events are older than one before them: their stream's stamps go back.
    pub(super) is_disordered: bool,
    /// Until then, something may have happened on some CPU that was lost.
    pub(super) blind_until: Timestamp,
    /// Whether switches are missing without having been lost: the recording follows some threads only.
    pub(super) partial: bool,
    pub(super) coverage: Coverage,
    /// The process whose tree it is of, as long as its first thread has not been seen.
    pub(super) root: Option<Pid>,
    /// Whether any thread is one that the recording follows.
    pub(super) follows: bool,
    /// How many of those that have ended had [`Lwp::lacks_calls`].
    pub(super) without_calls: u64,
    /// How many had [`Lwp::dies_unseen`].
    pub(super) died_unseen: u64,
}

impl Default for SuperTrace {
    fn default() -> Self {
        Self::new(Coverage::default())
    }
}

impl SuperTrace {
    /// The initial state, in which nothing is known; `coverage` is what the recording can show.
    pub fn new(coverage: Coverage) -> Self {
        Self {
            lwps: Numbers::default(),
            serials: 0,
            programs: Programs::new(&coverage),
            dumped: Map::default(),
            headless: Map::default(),
            ended: Map::default(),
            cpus: Numbers::default(),
            begin: None,
            now: Timestamp::MIN,
            latest: Timestamp::MIN,
            is_disordered: false,
            blind_until: Timestamp::MIN,
            partial: false,
            root: coverage.root,
            coverage,
            follows: false,
            without_calls: 0,
            died_unseen: 0,
        }
    }

    /// What the recording can know.
    pub fn coverage(&self) -> &Coverage {
        &self.coverage
    }

    /// The label of an origin's user threads, if it was reported.
    pub(crate) fn origin_name(&self, origin: Origin) -> Option<&str> {
        self.programs.origin_name(origin)
    }

    /// From the first event to the last.
    pub fn duration(&self) -> Duration {
        self.now - self.begin.unwrap_or(self.now)
    }

    /// Whether the recording follows only some LWPs ([`Lwp::followed`]); others appear as a side effect.
    pub fn is_partial(&self) -> bool {
        self.partial || !self.coverage.switches || self.coverage.of_lwps.is_some()
    }

    /// CPUs whose switches away from their idle threads are missing, but were not lost: the machine's kernel
    /// does not report them, or the recording follows only some LWPs. So the time at which other threads
    /// begin to run there is unknown.
    pub fn idle_unreported(&self) -> Vec<Cpu> {
        let mut cpus: Vec<Cpu> =
            self.cpus.iter().filter(|(_, cpu)| cpu.hides_idle()).map(|(number, _)| number).collect();
        cpus.sort_unstable();
        cpus
    }

    /// Number of LWPs with programs whose system calls the kernel is not known to record
    /// ([`Lwp::lacks_calls`]).
    pub fn without_calls(&self) -> u64 {
        self.without_calls + self.lwps.values().map(|lwp| u64::from(lwp.lacks_calls())).sum::<u64>()
    }

    /// Number of LWPs that have died without a sign of when they left their programs ([`Lwp::dies_unseen`]).
    pub fn died_unseen(&self) -> u64 {
        self.died_unseen
    }

    /// Whether events show of any LWP that the recording follows it ([`Lwp::followed`]).
    pub(crate) fn follows_any(&self) -> bool {
        self.follows
    }

    /// Handles the next event, and reports completed intervals to `fold`.
    pub fn event(&mut self, event: &Activity<'_>, fold: &mut impl Fold) {
        if event.time < self.latest {
            self.is_disordered = true;
        } else {
            self.doubt_order(fold);
            self.latest = event.time;
        }
        self.now = self.now.max(event.time);
        let begin = *self.begin.get_or_insert(event.time);
        let now = event.time;
        let tid = event.tid.or_else(|| self.cpus.get(event.cpu?)?.current);
        if self.coverage.begin.is_some_and(|begin| now < begin) && self.apply_earlier(tid, &event.kind) {
            return;
        }
        if let (Kind::InterruptExit(interrupt), Some(cpu)) = (event.kind, event.cpu) {
            self.ends_interrupt(cpu, interrupt, now, fold);
        }
        if let (Some(tid), Some(cpu)) = (tid, event.cpu) {
            self.seen_there(tid, cpu, event, fold);
        }
        self.means(event, tid, begin, fold);
    }

    /// What every event says of its thread: it runs on the event's CPU, in its process.
    #[inline(always)]
    fn seen_there(&mut self, tid: Tid, cpu: Cpu, event: &Activity<'_>, fold: &mut impl Fold) {
        let now = event.time;
        match event.kind {
            // Of another CPU, perhaps, of whose switches nothing is known: it is there for the name.
            Kind::Exec { file } if self.coverage.of_cpus => self.executes(tid, program_name(file), now, fold),
            Kind::NewTask { .. } | Kind::Fork { .. } if self.coverage.of_cpus => {}
            Kind::Kernel if self.cpus.get(cpu).is_some_and(|cpu| cpu.is_left_by(tid)) => {}
            _ => self.seen(tid, cpu, now, &event.kind, fold),
        }
        self.belongs(tid, event.process, now, fold);
    }

    /// What an event says by its kind. `tid` is the thread that recorded it.
    #[inline(always)]
    fn means(&mut self, event: &Activity<'_>, tid: Option<Tid>, begin: Timestamp, fold: &mut impl Fold) {
        let now = event.time;
        match (event.kind, event.cpu) {
            (Kind::Switch { prev, prev_name, prev_state, next, next_name }, Some(cpu)) => {
                // Else it has been seen there already.
                if tid != Some(prev) || !self.coverage.switches {
                    self.takes_over(prev, cpu, now, fold);
                    self.occupy_cpu(prev, cpu, now, fold);
                }
                self.switch(cpu, now, (prev, prev_name, prev_state), (next, next_name), fold);
            }
            (Kind::Waking { tid, name }, _) => self.woken((tid, name), event, fold, Lwp::waking),
            (Kind::Wakeup { tid, name }, _) => self.woken((tid, name), event, fold, Lwp::wakeup),
            (Kind::Fork { child, name }, _) => self.forked(child, name, now, fold),
            (Kind::NewTask { child, same_process }, _) => self.cloned(tid, child, same_process, now),
            (Kind::Dump { tid, process, name, is_kernel }, _) => {
                self.dumped(tid, Dumped { process: Some(process), name: name.to_owned(), is_kernel });
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
            (Kind::Made { child, process }, _) => self.made(tid, child, process),
            (Kind::InterruptEntry { kind, name }, Some(cpu)) => {
                self.begins_interrupt(cpu, kind, name, now, fold)
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
            // Recorded by no known CPU: what it did there is unknown, so no state changes.
            (Kind::Switch { .. } | Kind::InterruptEntry { .. } | Kind::Raise { .. }, None) => {}
            // All others say something of the thread that recorded them, or nothing: they have been handled.
            _ => {}
        }
    }

    /// Takes a loss: events between `from` and `to` are missing.
    pub fn lost(&mut self, scope: Scope, from: Timestamp, to: Timestamp, fold: &mut impl Fold) {
        let lossy = match scope {
            // LWPs and CPUs change, below; tasks, which programs report, do not.
            Scope::Kernel(lossy) => lossy,
            // Tasks change, and what LWPs carry. Samples change no state.
            Scope::User => return self.programs.lost(from, to, &mut self.lwps, fold),
            Scope::Samples => return,
        };
        self.now = self.now.max(from);
        self.blind_until = self.blind_until.max(to);
        // A thread that runs on another CPU cannot have been switched on this one; all others can.
        for lwp in self.lwps.values_mut() {
            let elsewhere =
                matches!((lwp.state(), lossy), (State::Running { cpu }, Some(lossy)) if cpu != lossy);
            if !elsewhere {
                lwp.lose(from, fold);
            }
        }
        for (number, cpu) in self.cpus.iter_mut() {
            if lossy.is_none_or(|lossy| lossy == number) {
                cpu.report(number, from, fold);
                *cpu = CpuState::since(to);
            }
        }
    }

    /// Events that are in order again follow some that were not: which of these came last, and thus every
    /// state, is unknown.
    #[inline]
    fn doubt_order(&mut self, fold: &mut impl Fold) {
        if std::mem::take(&mut self.is_disordered) {
            self.lost(Scope::Kernel(None), self.latest, self.latest, fold);
            self.lost(Scope::User, self.latest, self.latest, fold);
        }
    }

    /// Starts over at `time` with the current knowledge: nothing before it is reported, and counters are
    /// zero.
    pub fn restart(&mut self, time: Timestamp) {
        self.advance(time);
        self.begin = Some(time);
        self.lwps.values_mut().for_each(|lwp| lwp.restart(time));
        self.cpus.iter_mut().for_each(|(number, cpu)| cpu.report(number, time, &mut ()));
        self.programs.restart(time);
    }

    /// Nothing happens until `time`.
    pub fn advance(&mut self, time: Timestamp) {
        self.now = self.now.max(time);
    }

    /// Reports the intervals that last until the end of the recording.
    pub fn finish(mut self, fold: &mut impl Fold) {
        self.doubt_order(fold);
        for lwp in self.lwps.values_mut() {
            if self.coverage.of_lwps.is_some() {
                lwp.doubt_last_wait(self.now, fold);
            }
            lwp.report(self.now, fold);
        }
        self.programs.finish(self.now, &mut self.lwps, fold);
        self.cpus.iter_mut().for_each(|(number, cpu)| cpu.report(number, self.now, fold));
        for lwp in self.lwps.values() {
            fold.change(Change::LwpEnds { lwp });
        }
    }

    /// Whether events of the kernel may be missing at this time.
    fn is_blind(&self, now: Timestamp) -> bool {
        self.coverage.of_cpus || now < self.blind_until
    }
}
