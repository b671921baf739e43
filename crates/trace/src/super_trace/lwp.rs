//! One thread of the kernel (lightweight process) and its states in the scheduler.
//!
//! In addition to its scheduler state it has a mode, user code or system call, which it keeps while it does
//! not run. [`moves`](super::moves) changes both.

use super::activity::Name;
use super::calls::Calls;
use super::doing::{Doing, Mode};
use super::serial::LwpSerial;
use super::user_thread::Key;
use tracewing_units::{Cpu, Pid, Task, Tid, Timestamp};

/// What is known of a thread at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// No event determines the state.
    Unknown,
    Running {
        cpu: Cpu,
    },
    /// It wants to run and waits for a CPU.
    Runnable {
        /// It was taken from one.
        preempted: bool,
    },
    /// It waits for something else.
    Blocked {
        /// A waking was seen while it was still on its CPU. Either that is what ends this state, then a
        /// wake-up without a waking of its own follows, or it was used up before.
        woken_before: bool,
    },
    Ended,
}

/// Which user thread an LWP runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Carries {
    /// Unknown; most never have any.
    Unknown,
    None,
    Thread(Key),
    /// None any more: another LWP has taken over this one, and the switch away from it is still to come.
    /// Tokio's hooks report it that way: a worker calls them when another one may have the task already.
    Late(Key),
}

/// Which program a process executes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Program {
    /// Number of programs that it has executed since it was first seen.
    pub number: u32,
    /// When it began this program: as the kernel reports, or else when the program first identified itself.
    /// For the first program, when the thread was first seen.
    pub since: Timestamp,
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

/// A thread as described by a state dump.
#[derive(Debug, Clone, Default)]
pub(super) struct Dumped {
    pub process: Option<Pid>,
    pub name: Vec<u8>,
    pub is_kernel: bool,
}

/// A thread as the kernel knows it.
#[derive(Debug, Clone)]
pub struct Lwp {
    /// How many LWPs the super-trace had before this one.
    pub serial: LwpSerial,
    /// The kernel's number of the thread, reused after its end.
    pub tid: Tid,
    /// The process it belongs to, where the events say: its first thread's number.
    pub process: Option<Pid>,
    /// Its last known name.
    pub name: String,
    /// Whether events show that the recording follows this thread: it recorded something itself.
    pub followed: bool,
    /// Whether it is one of the kernel's own, which have no program.
    pub is_kernel: bool,
    /// How often it left a CPU.
    pub switches: u64,
    /// How many of these switches left it ready to run.
    pub preemptions: u64,
    /// How often it was next seen on another CPU than before.
    pub migrations: u64,
    /// How often it was woken.
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
    /// The user thread whose exit it has just recorded, which ended by that: its last switch may follow.
    pub(super) exited: Option<Task>,
    /// The CPU on which the user thread that it runs has arrived last.
    pub(super) carried_to: Option<Cpu>,
    pub(super) sight: Sight,
    /// Whether every beginning and end of its system calls is reported. If not, its mode at one moment
    /// implies nothing about the time around it.
    pub(super) reports_modes: bool,
    pub(super) calls: Calls,
    /// Whether it has died, and no event says when it left its program.
    pub(super) dies_unseen: bool,
    /// What kind of lock it waits for, as its program says, whether it sleeps for it or tries.
    pub waits_for: Option<Name>,
    pub(super) state: State,
    /// Up to when time is accounted for.
    pub(super) since: Timestamp,
    /// The last event that fits the state.
    pub(super) confirmed: Timestamp,
    pub(super) mode: Mode,
    /// The last event that fits the mode.
    pub(super) mode_confirmed: Timestamp,
    /// Whether its initial mode is settled: it has been reported, or cannot be known since events are
    /// missing.
    pub(super) mode_settled: bool,
    /// Whether its program has touched a page that was not there, and has not been seen to continue since.
    pub(super) faulted: bool,
    /// Whether it is in the call that has executed its program, if that call's end is the next sign of the
    /// mode, and in an unknown one otherwise.
    pub(super) executes: bool,
    /// The interrupt that has its CPU.
    pub(super) interrupted: Option<Name>,
    /// Interrupts nested earlier within the same outermost one, each with its end: not reported before the
    /// end of the outermost one is seen.
    pub(super) interrupts: Vec<(Name, Timestamp)>,
    pub(super) last_cpu: Option<Cpu>,
    /// A waking without a wake-up so far.
    pub(super) waking: bool,
}

impl Lwp {
    /// A thread whose state is unknown since `begin`.
    pub(super) fn new(serial: LwpSerial, tid: Tid, begin: Timestamp) -> Self {
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
            exited: None,
            carried_to: None,
            sight: Sight::Always,
            reports_modes: true,
            calls: Calls::default(),
            dies_unseen: false,
            waits_for: None,
            state: State::Unknown,
            since: begin,
            confirmed: begin,
            mode: Mode::Unknown,
            mode_confirmed: begin,
            mode_settled: false,
            faulted: false,
            executes: false,
            interrupted: None,
            interrupts: Vec::new(),
            last_cpu: None,
            waking: false,
        }
    }

    /// A thread that was created just now: it does not run before its first wake-up.
    pub(super) fn created(serial: LwpSerial, tid: Tid, now: Timestamp) -> Self {
        Self { state: State::Blocked { woken_before: false }, ..Self::new(serial, tid, now) }
    }

    /// Its creator made it so: it begins in the system call that made it, or is a kernel thread's own,
    /// too.
    pub(super) fn inherit(&mut self, mode: Mode, is_kernel: bool) {
        self.is_kernel = is_kernel;
        // From the unknown mode of a new thread. Its creator's mode, if that is no call, says nothing.
        if let Mode::SystemCall(_) = mode {
            (self.mode, self.mode_settled) = (mode, true);
        }
    }

    /// It was created, and has not been woken since: its creator does that.
    pub(super) fn waits_for_creator(&self) -> bool {
        self.state == State::Blocked { woken_before: false } && self.last_cpu.is_none() && !self.waking
    }

    /// It was created, without a name, and nothing was seen of it since. Where events are missing, its state
    /// may be unknown from the beginning.
    pub(super) fn is_newborn(&self) -> bool {
        let did_nothing = self.last_cpu.is_none() && self.user_events == 0 && self.system_calls == 0;
        let is_unseen = self.state == State::Unknown && did_nothing && !self.waking;
        (self.waits_for_creator() || is_unseen) && !self.has_name()
    }

    /// Up to when its state has been reported: its end, once it has ended, in nanoseconds on the recording's
    /// clock.
    pub fn reported_to(&self) -> Timestamp {
        self.since
    }

    /// Whether it had a program whose system calls no event proves to be recorded, such as a 32-bit program,
    /// or one that made unrecorded calls: then [`Lwp::system_calls`] is incomplete, and user time is unknown.
    pub fn lacks_calls(&self) -> bool {
        self.calls.are_missing()
    }

    /// Whether it has died, and no event (`sched_process_exit`) says when it left its program: then user time
    /// is unknown.
    pub fn dies_unseen(&self) -> bool {
        self.dies_unseen
    }

    /// Whether it is known to run a user thread.
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

    pub(super) fn state(&self) -> State {
        self.state
    }

    /// Its mode while it runs, ignoring interrupts.
    pub fn mode(&self) -> Mode {
        if self.reports_modes && !self.executes { self.mode } else { Mode::Unknown }
    }

    /// The CPU on which it runs.
    pub fn cpu(&self) -> Option<Cpu> {
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

    /// Other events than its own report its process and name; its own take precedence.
    pub(super) fn introduce(&mut self, dumped: &Dumped) {
        self.process = self.process.or(dumped.process);
        self.is_kernel |= dumped.is_kernel;
        if !self.has_name() {
            self.rename(&dumped.name);
        }
    }

    pub(super) fn is_out_of_sight(&self) -> bool {
        match self.sight {
            Sight::Always => false,
            Sight::Never | Sight::Stranger => true,
            Sight::WithThread { chosen } => !(chosen && matches!(self.carries, Carries::Thread(_))),
        }
    }

    /// Its current state, with CPU and mode.
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
                    Mode::SystemCall(call) if !self.executes => Some(call),
                    _ => None,
                }),
            },
        }
    }
}
