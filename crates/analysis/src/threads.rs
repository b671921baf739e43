//! Where the time of each thread went: running, waiting for a CPU, blocked, or unknown.
//!
//! A fold over the merged events in one pass; its memory grows with the number of threads only. It starts without
//! knowing anything and believes no more than the events say: what a missing event makes doubtful becomes unknown time
//! of the threads concerned, and the rest stays.

use crate::activity::{Activity, Kind, Scope};
use crate::lwp::{Lwp, State};
use serde::Serialize;
use std::collections::HashMap;

/// The longest name that the kernel keeps for a thread, in bytes (`TASK_COMM_LEN` less its end).
const COMM: usize = 15;

/// One thread's account. Times are in nanoseconds; the first four add up to the thread's life within the recording.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
pub struct Thread {
    /// The process it belongs to, where the events say: its first thread's number.
    pub process: Option<i32>,
    /// Its number. One that was given again after the thread's end has an account for each thread.
    pub tid: i32,
    /// Its last known name.
    pub name: String,
    /// On a CPU, interrupts included.
    pub running_ns: u64,
    /// Ready to run, but no CPU was free for it.
    pub waiting_ns: u64,
    /// Waiting for something else: a lock, data, time, its first start.
    pub blocked_ns: u64,
    /// Before the first event that tells, and where events are missing.
    pub unknown_ns: u64,
    /// Part of `running_ns`: taken from it by interrupts and softirqs.
    pub interrupted_ns: u64,
    /// How often it left a CPU.
    pub switches: u64,
    /// How often of these it could have gone on.
    pub preemptions: u64,
    /// How often it was next seen on another CPU than before.
    pub migrations: u64,
    /// How often somebody woke it.
    pub wakeups: u64,
    /// System calls that it began.
    pub system_calls: u64,
    /// Events of its program that it recorded.
    pub user_events: u64,
}

/// The result.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
pub struct ThreadsTable {
    /// By running time, longest first.
    pub threads: Vec<Thread>,
    /// Threads that the recording did not follow and met only beside those that it did: nothing is known of them.
    pub strangers: u64,
    /// From the first event to the last, in nanoseconds.
    pub duration_ns: u64,
}

/// The fold.
#[derive(Debug, Default)]
pub struct Threads {
    lwps: HashMap<i32, Lwp>,
    /// Process and name of threads that were dumped and not met so far.
    dumped: HashMap<i32, (i32, Vec<u8>)>,
    ended: Vec<Lwp>,
    cpus: HashMap<u32, Cpu>,
    begin: Option<i64>,
    now: i64,
    /// Until then, something may have happened on some CPU that was lost.
    blind_until: i64,
    /// Whether switches are missing without having been lost: the recording follows some threads only.
    partial: bool,
}

#[derive(Debug, Default)]
struct Cpu {
    /// Who runs there, 0 for its idle thread; `None` if unknown.
    current: Option<i32>,
    /// Interrupts within each other, and since when.
    interrupts: u32,
    interrupted_since: i64,
}

impl Threads {
    /// A fold that has seen nothing yet.
    pub fn new() -> Self {
        Self { now: i64::MIN, blind_until: i64::MIN, ..Self::default() }
    }

    /// Takes the next event.
    pub fn event(&mut self, event: &Activity<'_>) {
        self.now = self.now.max(event.time);
        self.begin.get_or_insert(event.time);
        let now = event.time;
        if let (Some(tid), Some(cpu)) = (event.tid, event.cpu) {
            self.seen(tid, cpu, now, &event.kind);
        }
        match (event.kind, event.cpu) {
            (Kind::Switch { prev, prev_name, prev_state, next, next_name }, Some(cpu)) => {
                self.switch(cpu, now, (prev, prev_name, prev_state), (next, next_name));
            }
            (Kind::Waking { tid, name }, _) => self.woken(tid, name, now, Lwp::waking),
            (Kind::Wakeup { tid, name }, _) => self.woken(tid, name, now, Lwp::wakeup),
            (Kind::Fork { child, name }, _) => {
                // Whether it is a process or a thread of one, a fork alone does not say; the new task just before it did.
                if !self.lwps.get(&child).is_some_and(Lwp::is_newborn) {
                    self.bury(child);
                }
                self.created(child, now).rename(name);
            }
            (Kind::NewTask { child, same_process }, _) => {
                let creator =
                    event.tid.and_then(|tid| self.lwps.get(&tid)).and_then(|lwp| lwp.account.process);
                let process = if same_process { creator } else { Some(child) };
                self.created(child, now).account.process = process;
            }
            (Kind::Dump { tid, process, name }, _) => self.dumped(tid, process, name),
            (Kind::InterruptEntry, Some(cpu)) => {
                let cpu = self.cpus.entry(cpu).or_default();
                if cpu.interrupts == 0 {
                    cpu.interrupted_since = now;
                }
                cpu.interrupts = cpu.interrupts.saturating_add(1);
            }
            (Kind::InterruptExit, Some(cpu)) => self.interrupt_ends(cpu, now),
            _ => {}
        }
    }

    /// Takes a loss: events between `from` and `to` are missing.
    pub fn lost(&mut self, scope: Scope, from: i64, to: i64) {
        let Scope::Kernel(lossy) = scope else { return };
        self.now = self.now.max(from);
        self.blind_until = self.blind_until.max(to);
        // Who was running on another CPU cannot have been switched on this one; everybody else can.
        for lwp in self.lwps.values_mut() {
            let elsewhere =
                matches!((lwp.state(), lossy), (State::Running { cpu }, Some(lossy)) if cpu != lossy);
            if !elsewhere {
                lwp.lose(from);
            }
        }
        for (number, cpu) in &mut self.cpus {
            if lossy.is_none_or(|lossy| lossy == *number) {
                *cpu = Cpu::default();
            }
        }
    }

    /// The table.
    pub fn finish(mut self) -> ThreadsTable {
        let Some(begin) = self.begin else { return ThreadsTable::default() };
        let mut all = self.ended;
        all.extend(self.lwps.drain().map(|(_, lwp)| lwp));
        let before = all.len();
        if self.partial {
            all.retain(|lwp| lwp.followed);
        }
        let strangers = (before - all.len()) as u64;
        for lwp in &mut all {
            lwp.finish(self.now);
        }
        let mut threads: Vec<Thread> = all.into_iter().map(|lwp| lwp.account).collect();
        threads.sort_by(|a, b| b.running_ns.cmp(&a.running_ns).then(a.tid.cmp(&b.tid)));
        ThreadsTable { threads, strangers, duration_ns: self.now.saturating_sub(begin).unsigned_abs() }
    }

    /// What any event says about the thread that recorded it.
    fn seen(&mut self, tid: i32, cpu: u32, now: i64, kind: &Kind<'_>) {
        if let Kind::Introduction { process, name } = kind {
            let lwp = self.known(tid);
            lwp.account.process = Some(*process);
            if !lwp.has_name() {
                lwp.rename(name);
            }
            return;
        }
        if let Kind::Dump { .. } = kind {
            // What recorded it, and where, is no matter of the threads.
            return;
        }
        if *kind == Kind::User {
            // No witness for a place: some tracers let a thread write into the buffer of a CPU that it has just left.
            let lwp = self.known(tid);
            lwp.account.user_events += 1;
            lwp.followed = true;
            return;
        }
        self.takes_over(tid, cpu, now);
        if tid == 0 {
            return;
        }
        let lwp = self.known(tid);
        lwp.seen_on(cpu, now);
        match kind {
            Kind::Syscall => lwp.account.system_calls += 1,
            Kind::Exec { file } => {
                lwp.account.process = Some(tid);
                let name = file.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
                lwp.rename(&name[..name.len().min(COMM)]);
            }
            Kind::Fork { .. } | Kind::NewTask { .. } | Kind::Exit | Kind::Kernel => {}
            Kind::Introduction { .. } | Kind::Dump { .. } | Kind::User => return,
            // Recorded beside a thread, not by it: no sign that the recording follows it.
            Kind::Switch { .. }
            | Kind::Waking { .. }
            | Kind::Wakeup { .. }
            | Kind::InterruptEntry
            | Kind::InterruptExit => return,
        }
        lwp.followed = true;
    }

    /// A CPU runs `tid`, as an event shows. Where another thread was thought to run, a switch is missing.
    fn takes_over(&mut self, tid: i32, cpu: u32, now: i64) {
        let before = self.cpus.entry(cpu).or_default().current.replace(tid);
        if let Some(before) = before
            && before != tid
        {
            self.partial = true;
            if let Some(lwp) = self.lwps.get_mut(&before)
                && lwp.state() == (State::Running { cpu })
            {
                lwp.doubt(now);
            }
        }
    }

    fn switch(&mut self, cpu: u32, now: i64, prev: (i32, &[u8], i64), next: (i32, &[u8])) {
        let (prev, prev_name, prev_state) = prev;
        let (next, next_name) = next;
        self.takes_over(prev, cpu, now);
        self.cpus.insert(cpu, Cpu { current: Some(next), ..Cpu::default() });
        let blind = now < self.blind_until;
        if prev != 0 {
            let lwp = self.known(prev);
            lwp.rename(prev_name);
            lwp.switched_out(cpu, prev_state, now);
            if blind {
                lwp.lose(now);
            }
            if lwp.state() == State::Ended {
                self.bury(prev);
            }
        }
        if next != 0 {
            let lwp = self.known(next);
            lwp.rename(next_name);
            lwp.switched_in(cpu, now);
        }
    }

    fn woken(&mut self, tid: i32, name: &[u8], now: i64, how: fn(&mut Lwp, i64)) {
        let blind = now < self.blind_until;
        let lwp = self.known(tid);
        if !lwp.has_name() {
            lwp.rename(name);
        }
        how(lwp, now);
        if blind && !matches!(lwp.state(), State::Running { .. }) {
            lwp.lose(now);
        }
    }

    fn interrupt_ends(&mut self, cpu: u32, now: i64) {
        let cpu = self.cpus.entry(cpu).or_default();
        match cpu.interrupts {
            0 => return,
            1 => {}
            _ => {
                cpu.interrupts -= 1;
                return;
            }
        }
        cpu.interrupts = 0;
        let taken = now.saturating_sub(cpu.interrupted_since).max(0).unsigned_abs();
        if let Some(lwp) = cpu.current.and_then(|tid| self.lwps.get_mut(&tid)) {
            lwp.account.interrupted_ns += taken;
        }
    }

    /// Of a thread that events tell of, its name and process become known; the others have no account.
    fn dumped(&mut self, tid: i32, process: i32, name: &[u8]) {
        // A dump may also tell of a thread that has ended; the last one of its number.
        let ended = self.ended.iter_mut().rev().find(|lwp| lwp.account.tid == tid);
        match self.lwps.get_mut(&tid).or(ended) {
            Some(lwp) => lwp.introduce(process, name),
            None => drop(self.dumped.insert(tid, (process, name.to_owned()))),
        }
    }

    fn known(&mut self, tid: i32) -> &mut Lwp {
        let begin = self.begin.unwrap_or(self.now);
        let dumped = &mut self.dumped;
        self.lwps.entry(tid).or_insert_with(|| {
            let mut lwp = Lwp::new(tid, begin);
            if let Some((process, name)) = dumped.remove(&tid) {
                lwp.introduce(process, &name);
            }
            lwp
        })
    }

    /// A thread that was created now, so that no earlier dump can mean it.
    fn created(&mut self, tid: i32, now: i64) -> &mut Lwp {
        self.dumped.remove(&tid);
        self.lwps.entry(tid).or_insert_with(|| Lwp::created(tid, now))
    }

    /// The thread is gone, or its number belongs to another one now.
    fn bury(&mut self, tid: i32) {
        self.ended.extend(self.lwps.remove(&tid));
    }
}
