//! Threads that already sleep when their events begin to be recorded, and the system calls they sleep in.
//!
//! Events show changes only: a thread that sleeps from before the recording to its end records none. `/proc`
//! shows what a thread does, but not at the moment at which its events begin. So each thread is looked at
//! twice, before that moment and after it. A thread that sleeps both times, and that has left a CPU as often
//! the second time as the first, has slept all the time between (`proc_pid_status(5)`,
//! `proc_pid_syscall(5)`). One that is just leaving the CPU looks asleep, too; the switch that
//! follows is recorded, and readers take its state as unknown up to then.

use crate::statedump;
use std::collections::BTreeMap;
use syscalls::Sysno;
use tracewing_proc::Status;
use tracewing_proc::guarded::system_call;
use tracewing_units::{Pid, Tid};

/// A sleeping thread, as `/proc` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Sleep {
    process: Pid,
    /// How often it has left a CPU.
    switches: u64,
    /// The number of the system call that it sleeps in.
    call: Option<usize>,
}

impl Sleep {
    /// What a thread does; `None` if it is awake or has ended.
    fn of(process: Pid, tid: Tid) -> Option<Self> {
        let call = system_call(process, tid);
        let (switches, is_stopped) = state_of_sleeper(&Status::of_thread(process, tid)?)?;
        Some(Self { process, switches, call: call.filter(|_| !is_stopped) })
    }
}

/// How often a thread with this `status` has left a CPU, and whether it is stopped (by a signal or a
/// debugger); `None` if it is awake.
fn state_of_sleeper(status: &Status) -> Option<(u64, bool)> {
    let is_stopped = match status.state()? {
        b'S' | b'D' => false,
        b'T' | b't' => true,
        _ => return None,
    };
    Some((status.switches()?, is_stopped))
}

/// Threads that sleep before their events are recorded.
#[derive(Debug)]
pub(crate) struct Sleepers(BTreeMap<Tid, Sleep>);

impl Sleepers {
    /// Those of these processes.
    pub(crate) fn of(processes: &[Pid]) -> Self {
        let threads = processes
            .iter()
            .flat_map(|process| statedump::threads_of(*process).into_iter().map(|tid| (*process, tid)));
        Self(threads.filter_map(|(process, tid)| Some((tid, Sleep::of(process, tid)?))).collect())
    }

    /// Those of `tids` that have slept ever since.
    pub(crate) fn still_asleep(&self, tids: &[Tid]) -> Vec<Asleep> {
        let asleep = |tid: &Tid| {
            let before = self.0.get(tid)?;
            let is_same = Sleep::of(before.process, *tid).as_ref() == Some(before);
            let call = before.call.and_then(Sysno::new).map_or("", |call| call.name());
            is_same.then_some(Asleep { tid: *tid, call })
        };
        tids.iter().filter_map(asleep).collect()
    }
}

/// A thread that slept when its events began to be recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Asleep {
    pub tid: Tid,
    /// The system call; empty if it is in none, or in one that has no name here.
    pub call: &'static str,
}

impl Asleep {
    /// Event context and payload.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = statedump::context();
        out.extend_from_slice(&self.tid.0.to_le_bytes());
        out.extend_from_slice(self.call.as_bytes());
        out.push(0);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::thread;

    const STATUS: &str = "Name:\tS (x)\nState:\tS (sleeping)\nTgid:\t7\nvoluntary_ctxt_switches:\t5\n\
                          nonvoluntary_ctxt_switches:\t3\n";

    #[test]
    fn switches_of_a_sleeping_thread_are_counted() {
        let of = |text: &str| state_of_sleeper(&Status::from(text));
        assert_eq!(of(STATUS), Some((8, false)));
        let state = |state: &str| of(&STATUS.replace("S (sleeping)", state));
        assert_eq!(state("D (disk sleep)"), Some((8, false)));
        assert_eq!((state("T (stopped)"), state("t (tracing stop)")), (Some((8, true)), Some((8, true))));
        assert_eq!((state("R (running)"), state("Z (zombie)")), (None, None));
        for cut in 0..STATUS.len() - 1 {
            let _ = of(&STATUS[..cut]);
        }
        assert_eq!(of(""), None);
    }

    #[test]
    fn threads_that_sleep_throughout_are_known_and_those_that_woke_are_not() {
        let (send, received) = mpsc::channel();
        let (wake, woken) = mpsc::channel::<()>();
        let sleeper = thread::spawn(move || {
            send.send(Tid(rustix::thread::gettid().as_raw_nonzero().get())).unwrap();
            while woken.recv().is_ok() {}
        });
        let tid = received.recv().unwrap();
        let process = Pid::from_unsigned(std::process::id());
        let asleep = || Sleep::of(process, tid);
        while asleep().is_none() {
            thread::yield_now();
        }
        let sleepers = Sleepers::of(&[process]);
        assert_eq!(sleepers.still_asleep(&[tid]), [Asleep { tid, call: "futex" }]);
        let before = asleep().unwrap().switches;
        wake.send(()).unwrap();
        while asleep().is_none_or(|sleep| sleep.switches == before) {
            thread::yield_now();
        }
        assert_eq!(sleepers.still_asleep(&[tid]), [], "it ran between");
        assert_eq!(sleepers.still_asleep(&[Tid(1 << 23)]), [], "no such thread");
        drop(wake);
        sleeper.join().unwrap();
    }

    /// Each program sleeps in `pause`, which is another call's number in the table of 32 bits.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn calls_by_another_instruction_than_syscall_have_no_name() {
        use std::fs;
        use std::process::Command;
        use tracewing_proc::Sleeping;
        use tracewing_testing::Cause;

        if !tracewing_testing::installed(&["as", "ld"]) {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        for (bits, format, number, instruction, name) in [
            ("--64", "elf_x86_64", 34, "syscall", Some(34)),
            ("--64", "elf_x86_64", 29, "int $0x80", None),
            ("--32", "elf_i386", 29, "int $0x80", None),
        ] {
            let [source, object, program] = ["s", "o", "pauses"].map(|name| folder.path().join(name));
            let text = format!(".globl _start\n_start: mov ${number}, %eax\n{instruction}\njmp _start\n");
            fs::write(&source, text).unwrap();
            let made = [
                Command::new("as").args([bits, "-o"]).args([&object, &source]).status(),
                Command::new("ld").args(["-m", format, "-o"]).args([&program, &object]).status(),
            ];
            assert!(made.iter().all(|status| status.as_ref().is_ok_and(|status| status.success())));
            let Ok(mut child) = Command::new(&program).spawn() else {
                return tracewing_testing::skip(Cause::Listed("32-bit programs"), "this machine runs none");
            };
            let process = Pid::from_unsigned(child.id());
            let mut has_ended = false;
            tracewing_testing::wait_until("it sleeps in its call", || {
                has_ended = child.try_wait().unwrap().is_some();
                let call = Sleeping::of(process, process.first_thread()).unwrap();
                has_ended || call.is_some_and(|call| call.number == number)
            });
            let sleep = Sleep::of(process, Tid(process.0));
            let _ = child.kill();
            child.wait().unwrap();
            if has_ended {
                return tracewing_testing::skip(Cause::Listed("32-bit programs"), "this machine runs none");
            }
            assert_eq!(sleep.expect("it sleeps").call, name, "{bits} {instruction}");
        }
    }
}
