//! One thread (lightweight process) on its way through the states of the scheduler.
//!
//! A thread starts in `Unknown`. Only an event that fixes its state moves it on; time before that, and time behind
//! which an event turns out to be missing, is unknown.

use crate::threads::Thread;

/// What is known of a thread at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Nothing.
    Unknown,
    /// It runs.
    Running {
        /// Where.
        cpu: u32,
    },
    /// It wants to run and waits for a CPU.
    Runnable,
    /// It waits for something else.
    Blocked {
        /// A waking was seen while it was still on its CPU. Either that is what ends this state, then a wake-up without
        /// a waking of its own follows, or it was used up before.
        woken_before: bool,
    },
    /// It is gone.
    Ended,
}

/// A thread and its account.
#[derive(Debug)]
pub struct Lwp {
    pub account: Thread,
    state: State,
    /// Up to when time is accounted for.
    since: i64,
    /// The last event that fits the state.
    confirmed: i64,
    last_cpu: Option<u32>,
    /// A waking without a wake-up so far.
    waking: bool,
    /// Whether events show that the recording follows this thread: it recorded something itself.
    pub followed: bool,
}

impl Lwp {
    /// A thread of which nothing is known since `begin`.
    pub fn new(tid: i32, begin: i64) -> Self {
        let account = Thread { tid, ..Thread::default() };
        let state = State::Unknown;
        Self {
            account,
            state,
            since: begin,
            confirmed: begin,
            last_cpu: None,
            waking: false,
            followed: false,
        }
    }

    /// A thread that was created just now: it does not run before its first wake-up.
    pub fn created(tid: i32, now: i64) -> Self {
        Self { state: State::Blocked { woken_before: false }, ..Self::new(tid, now) }
    }

    /// It was created, without a name, and nothing was seen of it since.
    pub fn is_newborn(&self) -> bool {
        self.state == State::Blocked { woken_before: false }
            && self.last_cpu.is_none()
            && !self.waking
            && !self.has_name()
    }

    pub fn state(&self) -> State {
        self.state
    }

    pub fn has_name(&self) -> bool {
        !self.account.name.is_empty()
    }

    pub fn rename(&mut self, name: &[u8]) {
        if self.account.name.as_bytes() != name {
            self.account.name = String::from_utf8_lossy(name).into_owned();
        }
    }

    /// Something else than its own doings tells its process and its name; what these have told counts more.
    pub fn introduce(&mut self, process: i32, name: &[u8]) {
        self.account.process.get_or_insert(process);
        if !self.has_name() {
            self.rename(name);
        }
    }

    /// It recorded something on a CPU, so it runs there.
    pub fn seen_on(&mut self, cpu: u32, now: i64) {
        match self.state {
            State::Running { cpu: known } if known == cpu => self.confirmed = self.confirmed.max(now),
            State::Ended => {}
            State::Unknown => self.enter(State::Running { cpu }, now),
            _ => {
                self.doubt(now);
                self.enter(State::Running { cpu }, now);
            }
        }
        self.arrive(cpu);
    }

    /// It gets a CPU.
    pub fn switched_in(&mut self, cpu: u32, now: i64) {
        match self.state {
            State::Unknown | State::Runnable => {}
            // No wake-up was seen, or no switch away: events are missing.
            _ => self.doubt(now),
        }
        self.enter(State::Running { cpu }, now);
        self.arrive(cpu);
    }

    /// It leaves a CPU, in one of the kernel's states (`TASK_REPORT` of `include/linux/sched.h`).
    pub fn switched_out(&mut self, cpu: u32, kernel_state: i64, now: i64) {
        match self.state {
            State::Unknown => {}
            State::Running { cpu: known } if known == cpu => {}
            _ => self.doubt(now),
        }
        self.arrive(cpu);
        self.account.switches += 1;
        let dead = kernel_state & 0x30 != 0;
        let goes_on = kernel_state == 0 || kernel_state > 0xff;
        if goes_on {
            self.account.preemptions += 1;
            self.enter(State::Runnable, now);
        } else if dead {
            self.enter(State::Ended, now);
        } else {
            self.enter(State::Blocked { woken_before: self.waking }, now);
        }
    }

    /// Somebody asks for it to run.
    pub fn waking(&mut self, now: i64) {
        self.account.wakeups += 1;
        self.waking = true;
        match self.state {
            State::Blocked { .. } | State::Unknown => self.enter(State::Runnable, now),
            State::Running { .. } | State::Runnable | State::Ended => {}
        }
    }

    /// It has become runnable.
    pub fn wakeup(&mut self, now: i64) {
        if !self.waking {
            self.account.wakeups += 1;
        }
        self.waking = false;
        match self.state {
            // The waker came while it was on its way out: it never waited for anything else than a CPU.
            State::Blocked { woken_before: true } => {
                self.state = State::Runnable;
                self.enter(State::Runnable, now);
            }
            State::Blocked { woken_before: false } | State::Unknown => self.enter(State::Runnable, now),
            State::Running { .. } | State::Runnable | State::Ended => {}
        }
    }

    /// Its state is no longer known from `from` on.
    pub fn lose(&mut self, from: i64) {
        if self.state != State::Ended {
            self.enter(State::Unknown, from);
        }
    }

    /// Accounts for the time until the recording's end.
    pub fn finish(&mut self, end: i64) {
        self.enter(self.state, end);
    }

    /// What the state says cannot be true up to now: it is believed only up to its last confirmation.
    pub fn doubt(&mut self, now: i64) {
        self.enter(State::Unknown, self.confirmed.max(self.since).min(now));
        self.enter(State::Unknown, now);
    }

    fn arrive(&mut self, cpu: u32) {
        if self.last_cpu.is_some_and(|last| last != cpu) {
            self.account.migrations += 1;
        }
        self.last_cpu = Some(cpu);
    }

    fn enter(&mut self, state: State, now: i64) {
        // Stamps of different CPUs may be out of step by less than a microsecond: no time passes then.
        let elapsed = now.saturating_sub(self.since).max(0).unsigned_abs();
        let account = &mut self.account;
        match self.state {
            State::Unknown => account.unknown_ns += elapsed,
            State::Running { .. } => account.running_ns += elapsed,
            State::Runnable => account.waiting_ns += elapsed,
            State::Blocked { .. } => account.blocked_ns += elapsed,
            State::Ended => {}
        }
        self.since = self.since.max(now);
        self.confirmed = self.confirmed.max(now);
        self.state = state;
    }
}
