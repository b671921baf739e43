//! Where an event belongs: the process, the LWP and the user thread that it happened in, and what was running
//! there.

use super::activity::{Activity, Kind, UserThreadKind};
use super::cpu::CpuState;
use super::doing::Mode;
use super::lwp::{Carries, Lwp};
use super::serial::{LwpSerial, TaskSerial};
use super::state::SuperTrace;
use super::user_thread::{Key, Owner, UserThread};
use tracewing_units::{Cpu, Pid, Task, Tid};

/// Where an event belongs. Parts that no event determines are `None` or `Unknown`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place<'s> {
    /// The CPU on which it was recorded.
    pub cpu: Option<Cpu>,
    /// The process: its first thread's number.
    pub process: Option<Pid>,
    /// The LWP; 0 is a CPU's idle thread.
    pub tid: Option<Tid>,
    /// The LWP's [`Lwp::serial`], where it is known.
    pub lwp: Option<LwpSerial>,
    /// The user thread that the LWP ran.
    pub thread: Carried<'s>,
    /// The user thread's [`UserThread::serial`](super::UserThread::serial), where it is known.
    pub thread_serial: Option<TaskSerial>,
    /// What the CPU was executing: the program, a system call, an interrupt.
    pub mode: Mode,
}

impl Place<'_> {
    /// The place of an event if only its CPU is known.
    pub(super) fn unknown(cpu: Option<Cpu>) -> Self {
        let (thread, mode) = (Carried::Unknown, Mode::Unknown);
        Place { cpu, process: None, tid: None, lwp: None, thread, thread_serial: None, mode }
    }
}

/// Which user thread an event belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carried<'s> {
    /// No event determines it, as with programs that have none.
    Unknown,
    /// None: it is an interrupt's, or its LWP ran none just then.
    None,
    /// The event belongs to this user thread.
    Thread {
        /// Its number, unique in its process.
        id: Task,
        /// Its last known name, which may be empty.
        name: &'s str,
    },
}

impl SuperTrace {
    /// The living LWP of this number.
    pub fn lwp(&self, tid: Tid) -> Option<&Lwp> {
        self.lwps.get(tid)
    }

    /// The live user thread of this number; if its process is unknown, found by the LWP that runs it.
    pub fn user_thread(&self, process: Option<Pid>, tid: Tid, id: Task) -> Option<&UserThread> {
        self.programs.get(Key { owner: Owner::of(process, tid), id })
    }

    /// The user thread that an LWP runs, if known.
    pub fn carried(&self, lwp: &Lwp) -> Option<&UserThread> {
        match lwp.carries {
            Carries::Thread(key) => self.programs.get(key),
            Carries::Unknown | Carries::None | Carries::Late(_) => None,
        }
    }

    /// A process's name: its first thread's, if any event reports it.
    pub fn process_name(&self, process: Pid) -> Option<&str> {
        let first = self
            .lwps
            .get(process.first_thread())
            .map(|lwp| lwp.name.as_str())
            .filter(|name| !name.is_empty());
        first
            .or_else(|| self.headless.get(&process).map(String::as_str))
            .or_else(|| std::str::from_utf8(&self.dumped.get(&process.first_thread())?.name).ok())
    }

    /// The process of an LWP: from its events, otherwise from a state dump.
    pub(super) fn process_of(&self, tid: Tid) -> Option<Pid> {
        match self.lwps.get(tid) {
            Some(lwp) => lwp.process,
            None => self.dumped.get(&tid)?.process,
        }
    }

    /// The place after the switch that comes next, and belongs to `place`; `None` if it is not a switch.
    pub(super) fn next_place<'s>(&'s self, event: &Activity<'_>, place: &Place<'s>) -> Option<Place<'s>> {
        let (lwp, carries) = match event.kind {
            Kind::Switch { next, .. } => {
                let lwp = self.lwps.get(next);
                let process = self.process_of(next);
                let (serial, mode) = (lwp.map(|lwp| lwp.serial), lwp.map_or(Mode::Unknown, Lwp::mode));
                let next = Place { process, tid: Some(next), lwp: serial, mode, ..*place };
                (next, lwp.map_or(Carries::Unknown, |lwp| lwp.carries))
            }
            Kind::UserThread(UserThreadKind::Switch { next: Task::NONE, .. }) => (*place, Carries::None),
            Kind::UserThread(UserThreadKind::Switch { next: id, .. }) => {
                let owner = place.process.map(Owner::process).or(place.tid.map(Owner::lwp))?;
                (*place, Carries::Thread(Key { owner, id }))
            }
            _ => return None,
        };
        let (thread, thread_serial) = self.carried_by(carries);
        Some(Place { thread, thread_serial, ..lwp })
    }

    /// The user thread that an LWP runs, and its serial number.
    fn carried_by(&self, carries: Carries) -> (Carried<'_>, Option<TaskSerial>) {
        match carries {
            Carries::Unknown => (Carried::Unknown, None),
            Carries::None if self.coverage.lacks_user_switches => (Carried::Unknown, None),
            Carries::None | Carries::Late(_) => (Carried::None, None),
            Carries::Thread(key) => {
                let known = self.programs.get(key);
                let name = known.map_or("", |thread| &thread.name);
                (Carried::Thread { id: key.id, name }, known.map(|thread| thread.serial))
            }
        }
    }

    /// Where the event belongs that comes next: a switch to what it switches from, at both levels.
    pub fn place(&self, event: &Activity<'_>) -> Place<'_> {
        let cpu = event.cpu.and_then(|cpu| self.cpus.get(cpu));
        let tid = event.tid.or_else(|| cpu?.current);
        let lwp = tid.and_then(|tid| self.lwps.get(tid));
        let in_program = is_in_program(&event.kind);
        let in_thread = in_program
            || matches!(
                event.kind,
                Kind::Switch { .. }
                    | Kind::SystemCall { .. }
                    | Kind::UnendedCall { .. }
                    | Kind::SystemCallEnd { .. }
                    | Kind::Exec { .. }
            );
        let interrupt = match event.kind {
            Kind::InterruptEntry { name, .. } => Some(name),
            Kind::Sample { by_timer: true, .. } => cpu.and_then(CpuState::softirq),
            _ => CpuState::interrupt_of(cpu, event.context),
        };
        let interrupted = matches!(event.kind, Kind::InterruptEntry { .. } | Kind::InterruptExit(_))
            || (!in_thread && interrupt.is_some());
        let mode = match event.kind {
            _ if interrupted => Mode::Interrupt(interrupt),
            Kind::SystemCall { call } | Kind::UnendedCall { call, .. } | Kind::SystemCallEnd { call } => {
                Mode::SystemCall(call)
            }
            _ if in_program => Mode::User,
            // In the kernel, for an unknown reason.
            Kind::Sample { .. } if lwp.is_some_and(|lwp| lwp.mode() == Mode::User) => Mode::Unknown,
            _ => lwp.map_or(Mode::Unknown, Lwp::mode),
        };
        let process = match event.kind {
            Kind::Introduction { process, .. } => Some(process),
            Kind::Program { .. } => event.tid.map(Tid::as_process),
            _ => event
                .process
                .or_else(|| match lwp {
                    Some(lwp) => lwp.process,
                    None => self.dumped.get(&tid?)?.process,
                })
                .or_else(|| self.root.filter(|root| Some(root.first_thread()) == tid)),
        };
        let carries = match (event.kind, tid) {
            (Kind::UserThread(UserThreadKind::Switch { prev: Task::NONE, .. }), _) => Carries::None,
            (Kind::UserThread(UserThreadKind::Switch { prev, .. }), Some(tid)) => {
                Carries::Thread(Key { owner: Owner::of(process, tid), id: prev })
            }
            _ => lwp.map_or(Carries::Unknown, |lwp| lwp.carries),
        };
        let (thread, thread_serial) = match interrupted {
            true => (Carried::None, None),
            false => self.carried_by(carries),
        };
        Place { cpu: event.cpu, process, tid, lwp: lwp.map(|lwp| lwp.serial), thread, thread_serial, mode }
    }
}

/// Whether an event of this kind is recorded while a program runs, not the kernel.
#[inline(always)]
fn is_in_program(kind: &Kind<'_>) -> bool {
    matches!(
        kind,
        Kind::User
            | Kind::UserThread(_)
            | Kind::Waits { .. }
            | Kind::Introduction { .. }
            | Kind::Program { .. }
            | Kind::PageFault { user: true, .. }
            | Kind::Sample { user: true, .. }
    )
}
