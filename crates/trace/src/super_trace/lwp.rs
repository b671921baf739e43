//! One thread as the kernel knows it (lightweight process) on its way through the states of the scheduler.
//!
//! It starts in `Unknown`. Only an event that fixes its state moves it on; time before that, and time behind which an event
//! turns out to be missing, is unknown. Beside that state it has a mode, program or system call, which outlasts the times
//! when it does not run, and is doubted by itself.

use super::activity::Name;
use super::fold::{Doing, Fold, Mode};
use super::state::Dumped;
use super::user_thread::Key;

/// What is known of a thread at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Nothing.
    Unknown,
    /// It runs.
    Running {
        /// Where.
        cpu: u32,
    },
    /// It wants to run and waits for a CPU.
    Runnable {
        /// It was taken from one.
        preempted: bool,
    },
    /// It waits for something else.
    Blocked {
        /// A waking was seen while it was still on its CPU. Either that is what ends this state, then a wake-up without
        /// a waking of its own follows, or it was used up before.
        woken_before: bool,
    },
    /// It is gone.
    Ended,
}

/// Which user thread an LWP runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Carries {
    /// Nobody knows; most have none ever.
    Unknown,
    None,
    Thread(Key),
    /// None any more: another LWP runs this one since, and the switch away from it is still to come. Tokio's hooks tell so: a
    /// worker calls them when another one may have the task already.
    Late(Key),
}

/// Which program a process executes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Program {
    /// How many others it has executed since it was met.
    pub number: u32,
    /// When it began with this one: as the kernel tells, else when the program first told of itself. For the one that it was met
    /// with, when that was.
    pub since: i64,
}

/// When it is known what an LWP does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sight {
    Always,
    /// No event says when it runs.
    Never,
    /// The recording is a part that leaves out its events.
    Stranger,
    /// The recording is a part that has certain user threads' events: while it runs one of those.
    WithThread {
        /// Whether the one that it ran last is one of them.
        chosen: bool,
    },
}

/// So many interrupts within one wait for its end.
const INTERRUPTS: usize = 1000;

/// A thread as the kernel knows it.
#[derive(Debug)]
pub struct Lwp {
    /// How many LWPs the super-trace had before this one.
    pub serial: usize,
    /// Its number.
    pub tid: i32,
    /// The process it belongs to, where the events say: its first thread's number.
    pub process: Option<i32>,
    /// Its last known name.
    pub name: String,
    /// Whether events show that the recording follows this thread: it recorded something itself.
    pub followed: bool,
    /// Whether it is one of the kernel's own, which have no program.
    pub is_kernel: bool,
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
    /// How often it touched a page that was not there.
    pub page_faults: u64,
    /// Events of its program that it recorded.
    pub user_events: u64,
    /// How often it began to run a user thread.
    pub polls: u64,
    /// What its process executes, if it is the first thread of that.
    pub program: Program,
    pub(super) carries: Carries,
    /// The CPU on which the user thread that it runs has arrived last.
    pub(super) carried_to: Option<u32>,
    pub(super) sight: Sight,
    /// Whether events tell of each begin and end of its system calls. Otherwise, what it is known to be in at one moment says nothing
    /// of the time around.
    pub(super) tells_modes: bool,
    /// What kind of lock it waits for, as its program says, whether it sleeps for it or tries.
    pub waits_for: Option<Name>,
    state: State,
    /// Up to when time is accounted for.
    since: i64,
    /// The last event that fits the state.
    confirmed: i64,
    mode: Mode,
    /// The last event that fits the mode.
    mode_confirmed: i64,
    /// Whether it is in vain to ask which mode it began with: that has been told, or events are missing.
    mode_settled: bool,
    /// The interrupt that has its CPU.
    interrupted: Option<Name>,
    /// Those that had it before within the same outermost one, each with its end: not told before that one's end is seen.
    interrupts: Vec<(Name, i64)>,
    last_cpu: Option<u32>,
    /// A waking without a wake-up so far.
    waking: bool,
}

impl Lwp {
    /// A thread of which nothing is known since `begin`.
    pub(super) fn new(serial: usize, tid: i32, begin: i64) -> Self {
        Self {
            serial,
            tid,
            process: None,
            name: String::new(),
            followed: false,
            is_kernel: false,
            switches: 0,
            preemptions: 0,
            migrations: 0,
            wakeups: 0,
            system_calls: 0,
            page_faults: 0,
            user_events: 0,
            polls: 0,
            program: Program { number: 0, since: begin },
            carries: Carries::Unknown,
            carried_to: None,
            sight: Sight::Always,
            tells_modes: true,
            waits_for: None,
            state: State::Unknown,
            since: begin,
            confirmed: begin,
            mode: Mode::Unknown,
            mode_confirmed: begin,
            mode_settled: false,
            interrupted: None,
            interrupts: Vec::new(),
            last_cpu: None,
            waking: false,
        }
    }

    /// A thread that was created just now: it does not run before its first wake-up.
    pub(super) fn created(serial: usize, tid: i32, now: i64) -> Self {
        Self { state: State::Blocked { woken_before: false }, ..Self::new(serial, tid, now) }
    }

    /// Its creator made it so: it begins in the system call that made it, or is a thread of the kernel's own, too.
    pub(super) fn inherit(&mut self, mode: Mode, is_kernel: bool) {
        self.is_kernel = is_kernel;
        if let Mode::SystemCall(_) = mode {
            (self.mode, self.mode_settled) = (mode, true);
        }
    }

    /// It was created, and has not been woken since: its creator does that.
    pub(super) fn waits_for_creator(&self) -> bool {
        self.state == State::Blocked { woken_before: false } && self.last_cpu.is_none() && !self.waking
    }

    /// It was created, without a name, and nothing was seen of it since.
    pub(super) fn is_newborn(&self) -> bool {
        self.waits_for_creator() && !self.has_name()
    }

    /// Up to when it has been told what it did: its end, once it has ended, in nanoseconds on the recording's clock.
    pub fn told_to(&self) -> i64 {
        self.since
    }

    /// Whether it runs a user thread, as far as anybody knows.
    #[inline]
    pub fn runs_user_thread(&self) -> bool {
        matches!(self.carries, Carries::Thread(_))
    }

    /// It recorded something itself.
    pub(super) fn records(&mut self) {
        self.followed = !self.is_stranger();
    }

    /// Whether the recording is a part that leaves out its events.
    pub(super) fn is_stranger(&self) -> bool {
        self.sight == Sight::Stranger
    }

    /// The recording ends. Who wakes it is not known in it: whether it still waited is not, either.
    pub(super) fn is_unwatched(&mut self, now: i64, fold: &mut impl Fold) {
        if let State::Blocked { .. } = self.state {
            self.doubt(now, fold);
        }
    }

    pub(super) fn state(&self) -> State {
        self.state
    }

    /// What it does while it runs, interrupts apart.
    pub fn mode(&self) -> Mode {
        if self.tells_modes { self.mode } else { Mode::Unknown }
    }

    /// The CPU on which it runs.
    pub fn cpu(&self) -> Option<u32> {
        match self.state {
            State::Running { cpu } => Some(cpu),
            _ => None,
        }
    }

    pub(super) fn has_name(&self) -> bool {
        !self.name.is_empty()
    }

    #[inline]
    pub(super) fn rename(&mut self, name: &[u8]) {
        if self.name.as_bytes() != name {
            self.name = String::from_utf8_lossy(name).into_owned();
        }
    }

    /// Something else than its own doings tells its process and its name; what these have told counts more.
    pub(super) fn introduce(&mut self, dumped: &Dumped) {
        self.process = self.process.or(dumped.process);
        self.is_kernel |= dumped.is_kernel;
        if !self.has_name() {
            self.rename(&dumped.name);
        }
    }

    /// It recorded something on a CPU, so it runs there.
    pub(super) fn seen_on(&mut self, cpu: u32, now: i64, fold: &mut impl Fold) {
        match self.state {
            State::Running { cpu: known } if known == cpu => self.confirmed = self.confirmed.max(now),
            State::Ended => {}
            State::Unknown => self.enter(State::Running { cpu }, now, fold),
            _ => {
                self.doubt(now, fold);
                self.enter(State::Running { cpu }, now, fold);
            }
        }
        self.arrive(cpu);
    }

    /// It runs somewhere: if it was thought to wait, events are missing.
    pub(super) fn does_not_wait(&mut self, now: i64, fold: &mut impl Fold) {
        if let State::Runnable { .. } | State::Blocked { .. } = self.state {
            self.doubt(now, fold);
        }
    }

    /// It gets a CPU.
    pub(super) fn switched_in(&mut self, cpu: u32, now: i64, fold: &mut impl Fold) {
        match self.state {
            State::Unknown | State::Runnable { .. } => {}
            // No wake-up was seen, or no switch away: events are missing.
            _ => self.doubt(now, fold),
        }
        self.enter(State::Running { cpu }, now, fold);
        self.arrive(cpu);
    }

    /// It leaves a CPU, in one of the kernel's states (`TASK_REPORT` of `include/linux/sched.h`).
    pub(super) fn switched_out(&mut self, cpu: u32, kernel_state: i64, now: i64, fold: &mut impl Fold) {
        match self.state {
            State::Unknown => {}
            State::Running { cpu: known } if known == cpu => {}
            _ => self.doubt(now, fold),
        }
        self.arrive(cpu);
        self.switches += 1;
        let dead = kernel_state & 0x30 != 0;
        let goes_on = kernel_state == 0 || kernel_state > 0xff;
        if goes_on {
            self.preemptions += 1;
            self.enter(State::Runnable { preempted: true }, now, fold);
        } else if dead {
            self.enter(State::Ended, now, fold);
        } else {
            self.enter(State::Blocked { woken_before: self.waking }, now, fold);
        }
    }

    /// Somebody asks for it to run. True, as it counts.
    pub(super) fn waking(&mut self, now: i64, fold: &mut impl Fold) -> bool {
        self.wakeups += 1;
        self.waking = true;
        match self.state {
            State::Blocked { .. } | State::Unknown => {
                self.enter(State::Runnable { preempted: false }, now, fold);
            }
            // It has been woken already, and slept again since: events are missing.
            State::Runnable { preempted: false } => {
                self.doubt(now, fold);
                self.enter(State::Runnable { preempted: false }, now, fold);
            }
            State::Running { .. } | State::Runnable { preempted: true } | State::Ended => {}
        }
        true
    }

    /// It has become runnable. Whether that counts: the waking before it has been counted.
    pub(super) fn wakeup(&mut self, now: i64, fold: &mut impl Fold) -> bool {
        let counts = !std::mem::replace(&mut self.waking, false);
        self.wakeups += u64::from(counts);
        let runnable = State::Runnable { preempted: false };
        match self.state {
            // The waker came while it was on its way out: it never waited for anything else than a CPU.
            State::Blocked { woken_before: true } => {
                self.state = runnable;
                self.enter(runnable, now, fold);
            }
            State::Blocked { woken_before: false } | State::Unknown => self.enter(runnable, now, fold),
            State::Running { .. } | State::Runnable { .. } | State::Ended => {}
        }
        counts
    }

    /// It begins a system call, and is in this mode afterwards.
    pub(super) fn begins_call(&mut self, mode: Mode, now: i64, fold: &mut impl Fold) {
        self.system_calls += 1;
        self.settle_mode(Mode::User, now, fold);
        if let Mode::SystemCall(_) = self.mode {
            self.doubt_mode(now, fold);
        }
        self.enter_mode(mode, now, fold);
    }

    /// It ends a system call.
    pub(super) fn ends_call(&mut self, call: Name, now: i64, fold: &mut impl Fold) {
        self.settle_mode(Mode::SystemCall(call), now, fold);
        if self.mode != Mode::SystemCall(call) {
            self.doubt_mode(now, fold);
        }
        self.enter_mode(Mode::User, now, fold);
    }

    /// Its program tells that it waits for this from now on, or for nothing any more.
    pub(super) fn waits(&mut self, on: Option<Name>, now: i64, fold: &mut impl Fold) {
        self.tell(now, fold);
        self.waits_for = on;
    }

    /// It runs its program's code.
    pub(super) fn in_program(&mut self, now: i64, fold: &mut impl Fold) {
        self.settle_mode(Mode::User, now, fold);
        match self.mode {
            Mode::User => self.mode_confirmed = self.mode_confirmed.max(now),
            Mode::SystemCall(_) => {
                self.doubt_mode(now, fold);
                self.enter_mode(Mode::User, now, fold);
            }
            Mode::Unknown | Mode::Interrupt(_) => self.enter_mode(Mode::User, now, fold),
        }
    }

    /// An interrupt takes its CPU, or has it back from one within it.
    pub(super) fn interrupted(&mut self, by: Name, now: i64, fold: &mut impl Fold) {
        match self.interrupted {
            Some(before) if self.interrupts.len() < INTERRUPTS => self.interrupts.push((before, now)),
            _ => self.enter(self.state, now, fold),
        }
        self.interrupted = Some(by);
    }

    /// It has its CPU back: now, or `seen` is false, and it had it before, nobody knows when.
    pub(super) fn resumes(&mut self, seen: bool, now: i64, fold: &mut impl Fold) {
        if self.interrupted.is_none() {
            return;
        }
        match (seen, self.cpu()) {
            (true, _) => self.tell(now, fold),
            (false, Some(cpu)) => self.cut(Doing::Running { cpu, mode: Mode::Unknown }, now, fold),
            (false, None) => {}
        }
        self.is_back();
    }

    /// An interrupt ends whose begin is missing: since the last event it ran, or the interrupt did.
    pub(super) fn was_interrupted(&mut self, now: i64, fold: &mut impl Fold) {
        let Some(cpu) = self.cpu() else { return };
        self.enter(self.state, self.confirmed.min(now), fold);
        self.cut(Doing::Running { cpu, mode: Mode::Unknown }, now, fold);
    }

    /// Its state is no longer known from `from` on.
    pub(super) fn lose(&mut self, from: i64, fold: &mut impl Fold) {
        if self.state != State::Ended {
            self.enter(State::Unknown, from, fold);
            self.is_back();
            (self.mode, self.mode_settled) = (Mode::Unknown, true);
        }
    }

    /// What lies before `time` counts no longer.
    pub(super) fn restart(&mut self, time: i64) {
        self.tell(time, &mut ());
        (self.switches, self.preemptions, self.migrations, self.wakeups) = (0, 0, 0, 0);
        (self.system_calls, self.page_faults, self.user_events, self.polls) = (0, 0, 0, 0);
    }

    /// Tells what it did up to now.
    pub(super) fn tell(&mut self, now: i64, fold: &mut impl Fold) {
        if let Some(cpu) = self.cpu().filter(|_| !self.interrupts.is_empty()) {
            for (by, to) in std::mem::take(&mut self.interrupts) {
                self.cut(Doing::Running { cpu, mode: Mode::Interrupt(Some(by)) }, to, fold);
            }
        }
        self.cut(self.doing(), now, fold);
    }

    /// No interrupt has its CPU.
    fn is_back(&mut self) {
        self.interrupted = None;
        self.interrupts.clear();
    }

    /// What the state says cannot be true up to now: it is believed only up to its last confirmation.
    pub(super) fn doubt(&mut self, now: i64, fold: &mut impl Fold) {
        let confirmed = self.confirmed.max(self.since).min(now);
        self.resumes(false, confirmed, fold);
        self.enter(State::Unknown, confirmed, fold);
        self.enter(State::Unknown, now, fold);
    }

    /// An event proves that it was in this mode up to now, if it was in one mode only.
    fn settle_mode(&mut self, mode: Mode, now: i64, fold: &mut impl Fold) {
        if !std::mem::replace(&mut self.mode_settled, true) {
            self.tell(now, fold);
            if self.tells_modes {
                fold.lwp_was(self, mode);
            }
        }
    }

    fn doubt_mode(&mut self, now: i64, fold: &mut impl Fold) {
        self.tell(self.mode_confirmed.min(now), fold);
        self.mode = Mode::Unknown;
    }

    fn enter_mode(&mut self, mode: Mode, now: i64, fold: &mut impl Fold) {
        self.tell(now, fold);
        (self.mode, self.mode_confirmed) = (mode, now);
    }

    fn arrive(&mut self, cpu: u32) {
        if self.last_cpu.is_some_and(|last| last != cpu) {
            self.migrations += 1;
        }
        self.last_cpu = Some(cpu);
    }

    fn enter(&mut self, state: State, now: i64, fold: &mut impl Fold) {
        self.tell(now, fold);
        self.confirmed = self.confirmed.max(now);
        self.state = state;
    }

    fn is_out_of_sight(&self) -> bool {
        match self.sight {
            Sight::Always => false,
            Sight::Never | Sight::Stranger => true,
            Sight::WithThread { chosen } => !(chosen && matches!(self.carries, Carries::Thread(_))),
        }
    }

    /// What it does.
    pub fn doing(&self) -> Doing {
        match self.state {
            _ if self.is_out_of_sight() => Doing::Unknown,
            State::Unknown | State::Ended => Doing::Unknown,
            State::Running { cpu } => {
                let mode = self.interrupted.map_or(self.mode(), |by| Mode::Interrupt(Some(by)));
                Doing::Running { cpu, mode }
            }
            State::Runnable { preempted } => Doing::Runnable { preempted },
            State::Blocked { .. } => Doing::Blocked {
                on: self.waits_for.or(match self.mode {
                    Mode::SystemCall(call) => Some(call),
                    _ => None,
                }),
            },
        }
    }

    #[inline]
    fn cut(&mut self, doing: Doing, now: i64, fold: &mut impl Fold) {
        // Stamps of different CPUs may be out of step by less than a microsecond: no time passes then.
        let now = now.max(self.since);
        let doing = if self.is_out_of_sight() { Doing::Unknown } else { doing };
        if self.state != State::Ended {
            fold.lwp(self, doing, self.since, now);
        }
        self.since = now;
    }
}
