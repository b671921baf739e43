//! Measures how long a thread has slept: the time-out of a repeated system call is shortened by this time.
//!
//! The kernel keeps the time at which a thread last ran, on the clock of the CPU's run queue
//! (`/proc/PID/task/TID/sched`, `se.exec_start`, kernel/sched/debug.c). This thread moves to that CPU and
//! compares its own time.

use std::fs;
use std::time::Duration;

use rustix::thread::{CpuSet, gettid, sched_getaffinity, sched_setaffinity};
use tracewing_proc::Stat;
use tracewing_units::{Cpu, Pid, Tid};

/// When a thread last ran, and how often it has given up its CPU since it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Asleep {
    pub slept: Duration,
    switches: u64,
}

impl Asleep {
    /// `None` where the kernel does not say, or this thread may not run there.
    pub(crate) fn read(pid: Pid, tid: Tid) -> Option<Self> {
        let before = Scheduled::read(pid, tid)?;
        let own_pid = Pid::from_unsigned(std::process::id());
        let own_tid = Tid(gettid().as_raw_nonzero().get());
        let last_cpu = Stat::of_thread(pid, tid)?.cpu()?;
        let own = on_cpu(last_cpu, || Scheduled::read(own_pid, own_tid))??;
        let slept = own.last_ran.checked_sub(before.last_ran)?;
        Some(Self { slept, switches: before.switches })
    }

    /// Whether it has slept until it was stopped, and has not run meanwhile. To stop is one switch.
    pub(crate) fn lasted(&self, pid: Pid, tid: Tid) -> bool {
        Scheduled::read(pid, tid).is_some_and(|now| now.switches <= self.switches + 1)
    }
}

struct Scheduled {
    /// On the clock of its CPU's run queue.
    last_ran: Duration,
    switches: u64,
}

impl Scheduled {
    fn read(pid: Pid, tid: Tid) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/task/{tid}/sched")).ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let value = |name: &str| {
            let line = text.lines().find(|line| line.split([' ', ':']).next() == Some(name))?;
            Some(line.rsplit_once(':')?.1.trim())
        };
        let (milliseconds, nanoseconds) = value("se.exec_start")?.split_once('.')?;
        let milliseconds = Duration::from_millis(milliseconds.parse().ok()?);
        let last_ran = milliseconds + Duration::from_nanos(nanoseconds.parse().ok()?);
        Some(Self { last_ran, switches: value("nr_switches")?.parse().ok()? })
    }
}

/// Runs `body` on a CPU.
fn on_cpu<R>(cpu: Cpu, body: impl FnOnce() -> R) -> Option<R> {
    let before = sched_getaffinity(None).ok()?;
    let mut there = CpuSet::new();
    (cpu.index() < CpuSet::MAX_CPU).then(|| there.set(cpu.index()))?;
    sched_setaffinity(None, &there).ok()?;
    let result = body();
    sched_setaffinity(None, &before).ok()?;
    Some(result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn a_sleeping_thread_has_slept_since_it_last_ran() {
        let pid = Pid::from_unsigned(std::process::id());
        let (say, hear) = channel();
        let (wake, sleep) = channel::<()>();
        let thread = std::thread::spawn(move || {
            say.send(Tid(gettid().as_raw_nonzero().get())).unwrap();
            let _ = sleep.recv();
        });
        let tid = hear.recv().unwrap();
        while Stat::of_thread(pid, tid).unwrap().state() != Some('S') {
            std::thread::yield_now();
        }
        std::thread::sleep(Duration::from_millis(50));
        let asleep = Asleep::read(pid, tid).unwrap();
        assert!(asleep.slept >= Duration::from_millis(40), "{asleep:?}");
        assert!(asleep.lasted(pid, tid));
        wake.send(()).unwrap();
        thread.join().unwrap();
        assert!(!asleep.lasted(pid, tid));
    }

    #[test]
    fn what_the_kernel_does_not_say_is_unknown() {
        assert!(Scheduled::parse("cat (1, #threads: 1)\nnr_switches : 7\n").is_none());
        let text = "se.exec_start      :   12.000345\nnr_switches   :  7\n";
        assert_eq!(Scheduled::parse(text).unwrap().last_ran, Duration::from_nanos(12_000_345));
    }
}
