//! What one LWP did, by where it did it.

use super::entries::First;
use super::ipc::{Cause, Ipc};
use crate::times::{add, grow};
use tracewing_trace::super_trace::TaskState;
use tracewing_trace::super_trace::{Doing, Lwp, Mode, Name};
use tracewing_units::{Duration, Pid, Timestamp};

/// Where a thread does something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Place {
    User,
    Call(Name),
    /// The work of a thread of the kernel's own.
    Kernel,
    Unknown,
}

impl Place {
    pub(super) fn new(mode: Mode, is_kernel: bool) -> Self {
        match mode {
            Mode::User => Place::User,
            Mode::SystemCall(call) => Place::Call(call),
            Mode::Unknown | Mode::Interrupt(_) if is_kernel => Place::Kernel,
            Mode::Unknown | Mode::Interrupt(_) => Place::Unknown,
        }
    }
}

/// Number of waits, and their total duration.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Waits {
    /// Number of waits.
    pub count: u64,
    /// Total length of the waits, in nanoseconds.
    pub ns: Duration,
}

impl Waits {
    pub(super) fn add(&mut self, other: Waits) {
        self.count += other.count;
        grow(&mut self.ns, other.ns);
    }
}

/// What was done, counted, and waited for in one place.
#[derive(Debug, Default, Clone)]
pub(super) struct Sums {
    pub own_ns: Duration,
    pub calls: u64,
    pub events: u64,
    pub faults: u64,
    pub woke: u64,
    /// Waits for other threads, in the order of [`Ipc::ALL`].
    pub ipc: [Waits; 4],
    /// Waits whose end no event explains.
    pub unexplained: Waits,
    /// Waits whose end no event shows, as they last at the end, or at a loss.
    pub lasting: Waits,
    pub interrupts: Vec<(Option<Name>, Duration)>,
    pub blocked_ns: Duration,
    pub ready_ns: Duration,
}

impl Sums {
    pub(super) fn take(&mut self, other: Sums) {
        grow(&mut self.own_ns, other.own_ns);
        self.calls += other.calls;
        self.events += other.events;
        self.faults += other.faults;
        self.woke += other.woke;
        self.ipc.iter_mut().zip(other.ipc).for_each(|(sum, waits)| sum.add(waits));
        self.unexplained.add(other.unexplained);
        self.lasting.add(other.lasting);
        other.interrupts.into_iter().for_each(|(by, ns)| add(&mut self.interrupts, by, ns));
        grow(&mut self.blocked_ns, other.blocked_ns);
        grow(&mut self.ready_ns, other.ready_ns);
    }
}

/// A time in which it was blocked, up to now.
#[derive(Debug, Clone, Copy)]
pub(super) struct Block {
    pub place: Place,
    pub ns: Duration,
    to: Timestamp,
}

/// What one LWP did.
#[derive(Debug, Default)]
pub(super) struct Account {
    /// Few places, so a search is short.
    pub places: Vec<(Place, Sums)>,
    /// Time in which no event shows its state.
    pub unseen_ns: Duration,
    /// How long it was on CPUs, interrupts apart.
    pub own_ns: Duration,
    /// Its first function, if its program reports it.
    pub entry: Option<First>,
    /// The process that woke it from its last wait: for that it runs.
    pub client: Option<Pid>,
    block: Option<Block>,
    /// Whether the mode that it began with is known.
    is_settled: bool,
    /// Whether it left a CPU on the return to user code; otherwise in the kernel, or to wait.
    returning: bool,
    in_kernel: bool,
    /// Waits in the current system call that were attributed to a pipe, since nothing shows otherwise.
    doubtful: Option<(Place, Waits)>,
}

impl Account {
    pub(super) fn at(&mut self, place: Place) -> &mut Sums {
        let known = self.places.iter().position(|(known, _)| *known == place);
        let index = known.unwrap_or_else(|| {
            self.places.push((place, Sums::default()));
            self.places.len() - 1
        });
        &mut self.places[index].1
    }

    /// It leaves a CPU. The kernel's state distinguishes a thread that is preempted on the return to user
    /// code (0), one that is preempted in the kernel (above 0xff), and one that waits.
    pub(super) fn stops(&mut self, prev_state: TaskState) {
        match prev_state {
            TaskState::RUNNING => self.returning = true,
            _ => self.in_kernel = true,
        }
    }

    /// It has ended. If its mode was never reported, but it left CPUs only on the return to user code, it was
    /// in user code.
    pub(super) fn ends(&mut self) {
        if !self.is_settled && self.returning && !self.in_kernel {
            self.was(Place::User);
        }
    }

    /// Attributes time of an unknown place to this place.
    pub(super) fn was(&mut self, place: Place) {
        self.is_settled = true;
        if let Some(unknown) = self.places.iter().position(|(known, _)| *known == Place::Unknown) {
            let (_, sums) = self.places.swap_remove(unknown);
            self.at(place).take(sums);
        }
        self.block
            .iter_mut()
            .filter(|block| block.place == Place::Unknown)
            .for_each(|block| block.place = place);
    }

    /// What it did in its program, it may have done in system calls.
    pub(super) fn hides_calls(&mut self) {
        self.is_settled = true;
        if let Some(program) = self.places.iter().position(|(known, _)| *known == Place::User) {
            let (_, sums) = self.places.swap_remove(program);
            self.at(Place::Unknown).take(sums);
        }
    }

    /// It did one thing for a time, which a filter leaves out.
    pub(super) fn did_unseen(&mut self, lwp: &Lwp, doing: Doing, to: Timestamp) {
        if let Doing::Blocked { .. } = doing {
            self.block = Some(Block { place: Place::new(lwp.mode(), lwp.is_kernel), ns: Duration::ZERO, to });
        }
    }

    /// It did one thing for a time.
    pub(super) fn did(&mut self, lwp: &Lwp, doing: Doing, from: Timestamp, to: Timestamp) {
        let ns = to - from;
        let place = match doing {
            Doing::Running { mode, .. } if !matches!(mode, Mode::Interrupt(_)) => {
                Place::new(mode, lwp.is_kernel)
            }
            _ => Place::new(lwp.mode(), lwp.is_kernel),
        };
        match doing {
            Doing::Unknown | Doing::Nested => grow(&mut self.unseen_ns, ns),
            Doing::Running { mode: Mode::Interrupt(by), .. } => add(&mut self.at(place).interrupts, by, ns),
            Doing::Running { .. } => {
                grow(&mut self.at(place).own_ns, ns);
                grow(&mut self.own_ns, ns);
            }
            Doing::Runnable { .. } => grow(&mut self.at(place).ready_ns, ns),
            Doing::Blocked { .. } => {
                grow(&mut self.at(place).blocked_ns, ns);
                let before = self.block.filter(|block| block.to == from && block.place == place);
                self.block = Some(Block { place, ns: before.map_or(ns, |block| ns + block.ns), to });
            }
        }
    }

    /// It is woken, or its continuation is unknown: the block that lasts until then.
    pub(super) fn woken(&mut self, at: Timestamp) -> Option<Block> {
        self.block.take().filter(|block| block.to == at)
    }

    /// What ended a wait: unless that was nothing of these, its time is no longer part of `blocked_ns`.
    pub(super) fn waited(&mut self, block: Block, cause: Cause) {
        let sums = self.at(block.place);
        let waits = Waits { count: 1, ns: block.ns };
        let of_cause = match cause {
            Cause::Thread(over) => &mut sums.ipc[over as usize],
            Cause::Unknown => &mut sums.unexplained,
            Cause::Unseen => &mut sums.lasting,
            Cause::Else => return,
        };
        of_cause.add(waits);
        sums.blocked_ns -= block.ns;
        if cause == Cause::Thread(Ipc::Pipe) {
            self.doubtful.get_or_insert((block.place, Waits::default())).1.add(waits);
        }
    }

    /// It begins a system call.
    pub(super) fn calls(&mut self, call: Name) {
        self.doubtful = None;
        self.at(Place::Call(call)).calls += 1;
    }

    /// The system call that it is in is for a socket.
    pub(super) fn uses_socket(&mut self) {
        let Some((place, waits)) = self.doubtful.take() else { return };
        let ipc = &mut self.at(place).ipc;
        let pipe = &mut ipc[Ipc::Pipe as usize];
        (pipe.count, pipe.ns) = (pipe.count - waits.count, pipe.ns - waits.ns);
        ipc[Ipc::Socket as usize].add(waits);
    }
}
