//! Which perf events are opened (`perf_event_open(2)`), and why the kernel refuses.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use perf_event_open_sys as sys;
use rustix::io::Errno;
use sys::bindings as abi;
use tracewing_abi::region::Clock;
use tracewing_units::{Cpu, Pid, Tid};

use crate::Error;
use crate::opening::{Heirs, Opening, Purpose};
use crate::record::Stacks;

/// Which processes are sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// A process, and all processes and threads that it starts, from its next `exec` on.
    Tree(Pid),
    /// Running processes, passed to [`crate::ProfileRecorder::follow`], and the threads that they start.
    Processes {
        /// Whether to include the processes that they fork.
        children: bool,
    },
    /// All processes of the machine, and the kernel.
    System,
}

impl Subject {
    /// The calling thread and what it starts.
    pub const MYSELF: Self = Self::Tree(Pid(0));
}

/// Checks that the kernel provides such samples.
///
/// # Errors
/// It does not provide them.
pub fn check(subject: Subject, hertz: u32, stacks: Stacks, clock: Clock) -> Result<(), Error> {
    let first = online_cpus().first().copied().unwrap_or(Cpu(0));
    Terms::find(subject, hertz, stacks, clock, first).map(drop)
}

/// What triggers a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trigger {
    /// A cycle counter, whose interrupt also samples code that runs with interrupts off.
    Cycles,
    /// The CPU's timer, which cannot sample code that runs with interrupts off.
    CpuClock,
}

impl Trigger {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Cycles => "cycles",
            Self::CpuClock => "cpu-clock",
        }
    }

    /// Unit of a sample's period.
    pub(crate) fn unit(self) -> &'static str {
        match self {
            Self::Cycles => "cycles",
            Self::CpuClock => "ns",
        }
    }

    fn event(self) -> (u32, u32) {
        match self {
            Self::Cycles => (abi::PERF_TYPE_HARDWARE, abi::PERF_COUNT_HW_CPU_CYCLES),
            Self::CpuClock => (abi::PERF_TYPE_SOFTWARE, abi::PERF_COUNT_SW_CPU_CLOCK),
        }
    }
}

/// What the kernel offers here.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terms {
    pub(crate) subject: Subject,
    pub(crate) trigger: Trigger,
    /// Samples per second of each running thread.
    pub(crate) hertz: u32,
    /// Whether kernel code may be sampled, too.
    pub(crate) kernel: bool,
    /// How the callers of a program's functions are found.
    pub(crate) stacks: Stacks,
    /// Whether mappings are reported with the build ids of their files (Linux 5.12).
    build_ids: bool,
    /// Clock of the records.
    clock: libc::clockid_t,
}

impl Terms {
    /// The best settings that the kernel accepts.
    ///
    /// # Errors
    /// It accepts none.
    pub(crate) fn find(
        subject: Subject,
        hertz: u32,
        stacks: Stacks,
        clock: Clock,
        cpu: Cpu,
    ) -> Result<Self, Error> {
        let clock = match clock {
            Clock::Tsc => libc::CLOCK_MONOTONIC_RAW,
            Clock::Monotonic => libc::CLOCK_MONOTONIC,
        };
        let trigger = Trigger::Cycles;
        let best = Self { subject, trigger, hertz, kernel: true, stacks, build_ids: true, clock };
        best.or_less(|terms| terms.open_sampler(cpu).map(drop))
    }

    /// These settings, or the next best ones that `open` accepts.
    fn or_less(self, open: impl Fn(&Self) -> io::Result<()>) -> Result<Self, Error> {
        let (mut terms, hertz) = (self, self.hertz);
        loop {
            let Err(error) = open(&terms) else { return Ok(terms) };
            match Errno::from_io_error(&error) {
                Some(Errno::ACCESS | Errno::PERM) if terms.kernel => terms.kernel = false,
                Some(Errno::ACCESS | Errno::PERM) => return Err(terms.not_allowed(error)),
                Some(Errno::NOENT | Errno::NODEV | Errno::OPNOTSUPP) if terms.trigger == Trigger::Cycles => {
                    terms.trigger = Trigger::CpuClock;
                }
                Some(Errno::INVAL) if most_hertz().is_some_and(|most| u64::from(hertz) > most) => {
                    return Err(Error::Rate { hertz, most: most_hertz().unwrap_or(0) });
                }
                Some(Errno::INVAL) if terms.build_ids => terms.build_ids = false,
                Some(Errno::NOSYS) => return Err(Error::Unavailable(error)),
                _ => return Err(Error::System { call: "perf_event_open", source: error }),
            }
        }
    }

    fn not_allowed(&self, error: io::Error) -> Error {
        let setting = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
        let setting = setting.trim();
        let (what, most, hint) = match self.subject {
            Subject::Tree(_) | Subject::Processes { .. } => ("own processes", 2, "; 2 would do"),
            Subject::System => ("the whole machine", 0, "; 0 would do, or no --system-wide"),
        };
        match setting.parse::<i32>() {
            Ok(number) if number > most => Error::NotAllowed { what, setting: setting.to_owned(), hint },
            _ => Error::Unavailable(error),
        }
    }

    /// Opens an event that takes samples on a CPU and reports mappings, names and forks.
    pub(crate) fn open_sampler(&self, cpu: Cpu) -> io::Result<OwnedFd> {
        self.open_sampler_of(self.tid(), cpu)
    }

    /// Like [`Self::open_sampler`], for one thread.
    pub(crate) fn open_sampler_of(&self, tid: Tid, cpu: Cpu) -> io::Result<OwnedFd> {
        let stack = match self.stacks {
            Stacks::FramePointers => 0,
            Stacks::Copied { bytes } => bytes.into(),
        };
        let Self { hertz, build_ids, clock, .. } = *self;
        let purpose = Purpose::Sample { hertz, stack, build_ids, clock };
        let (event, cpu) = (self.trigger.event(), Some(cpu));
        Opening { purpose, event, heirs: self.heirs(), kernel: self.kernel, tid, cpu }.open()
    }

    /// Opens an event of this thread on a CPU that records nothing. Its buffer receives the events of several
    /// threads.
    pub(crate) fn open_silent(&self, cpu: Cpu) -> io::Result<OwnedFd> {
        let purpose = Purpose::Collect { clock: self.clock };
        let event = (abi::PERF_TYPE_SOFTWARE, abi::PERF_COUNT_SW_DUMMY);
        Opening { purpose, event, heirs: Heirs::None, kernel: false, tid: Tid(0), cpu: Some(cpu) }.open()
    }

    /// Opens a counting event: of a tree on any CPU, or of the system on one CPU. `(value, time enabled, time
    /// running)` can be read from it.
    pub(crate) fn open_counter(&self, event: (u32, u32), cpu: Cpu) -> io::Result<OwnedFd> {
        self.open_counter_of(self.tid(), event, cpu)
    }

    /// Like [`Self::open_counter`], for one thread and what it starts, on any CPU.
    pub(crate) fn open_counter_of(&self, tid: Tid, event: (u32, u32), cpu: Cpu) -> io::Result<OwnedFd> {
        let cpu = match self.subject {
            Subject::Tree(_) | Subject::Processes { .. } => None,
            Subject::System => Some(cpu),
        };
        let (purpose, heirs) = (Purpose::Count, self.heirs());
        Opening { purpose, event, heirs, kernel: self.kernel, tid, cpu }.open()
    }

    /// The thread argument for the kernel. For running processes the calling thread stands in for theirs.
    fn tid(&self) -> Tid {
        match self.subject {
            Subject::Tree(pid) => pid.first_thread(),
            Subject::Processes { .. } => Tid(0),
            Subject::System => Tid(-1),
        }
    }

    fn heirs(&self) -> Heirs {
        match self.subject {
            Subject::Tree(_) => Heirs::FromExec,
            Subject::Processes { children: false } => Heirs::Threads,
            Subject::Processes { children: true } => Heirs::All,
            Subject::System => Heirs::None,
        }
    }
}

/// Redirects an event's records to the buffer of another event on the same CPU.
pub(crate) fn write_into(event: &OwnedFd, other: &OwnedFd) -> io::Result<()> {
    // SAFETY: two open perf events.
    let done = unsafe { sys::ioctls::SET_OUTPUT(event.as_raw_fd(), other.as_raw_fd()) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Enables or disables an event.
pub(crate) fn switch(event: &OwnedFd, on: bool) -> io::Result<()> {
    let event = event.as_raw_fd();
    // SAFETY: an open perf event; the argument is a number.
    let done = unsafe {
        match on {
            true => sys::ioctls::ENABLE(event, 0),
            false => sys::ioctls::DISABLE(event, 0),
        }
    };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn most_hertz() -> Option<u64> {
    fs::read_to_string("/proc/sys/kernel/perf_event_max_sample_rate").ok()?.trim().parse().ok()
}

/// The CPUs that are online.
pub(crate) fn online_cpus() -> Vec<Cpu> {
    let list = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let cpus = cpu_list(&list);
    if cpus.is_empty() { vec![Cpu(0)] } else { cpus }
}

/// Parses a list such as `0-2,5`.
fn cpu_list(text: &str) -> Vec<Cpu> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse::<u32>().ok()?..=last.parse().ok()?)
    };
    text.trim().split(',').filter_map(range).flatten().map(Cpu).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Settings that remain if the kernel answers `answer` as long as `must_not` holds for them.
    fn left(answer: Errno, must_not: fn(&Terms) -> bool) -> Result<Terms, Error> {
        let clock = libc::CLOCK_MONOTONIC_RAW;
        let (trigger, subject) = (Trigger::Cycles, Subject::Tree(Pid(1)));
        let stacks = Stacks::FramePointers;
        let best = Terms { subject, trigger, hertz: 1, kernel: true, stacks, build_ids: true, clock };
        best.or_less(|terms| if must_not(terms) { Err(answer.into()) } else { Ok(()) })
    }

    #[test]
    fn where_there_is_no_counter_of_cycles_the_timer_takes_samples() {
        for answer in [Errno::NOENT, Errno::NODEV, Errno::OPNOTSUPP] {
            let terms = left(answer, |terms| terms.trigger == Trigger::Cycles).unwrap();
            assert!(terms.trigger == Trigger::CpuClock && terms.kernel && terms.build_ids, "{answer}");
        }
        let terms = left(Errno::NOENT, |_| false).unwrap();
        assert!(terms.trigger == Trigger::Cycles && terms.kernel && terms.build_ids);
        assert!(left(Errno::NOENT, |_| true).is_err());
    }

    #[test]
    fn without_the_right_to_see_the_kernel_programs_are_sampled() {
        let terms = left(Errno::ACCESS, |terms| terms.kernel).unwrap();
        assert!(terms.trigger == Trigger::Cycles && !terms.kernel);
        assert!(left(Errno::ACCESS, |_| true).is_err());
        let terms = left(Errno::INVAL, |terms| terms.build_ids).unwrap();
        assert!(terms.kernel && !terms.build_ids);
    }

    #[test]
    fn lists_of_cpus() {
        assert_eq!(cpu_list("0-2,5\n"), [0, 1, 2, 5].map(Cpu));
        assert_eq!(cpu_list("0\n"), [Cpu(0)]);
        assert_eq!(cpu_list(""), []);
    }
}
