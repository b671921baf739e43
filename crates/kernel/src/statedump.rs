//! The state dump: which threads live when a recording of the whole system begins or a snapshot is taken, and
//! to which processes they belong.
//!
//! Of a thread that was created before the oldest event that is there, events show the number and mostly the
//! name, not the process. LTTng has the event `lttng_statedump_process_state` for that (`lttng-statedump.h`
//! of lttng-modules), which trace viewers know; here it is filled from `/proc/TID/stat` (`proc_pid_stat(5)`)
//! and `status`.
//!
//! Of threads that have ended and whose events are in a snapshot, the tracer remembers the process (option
//! `record-tgid`, file `saved_tgids`); their state is `dead` and all else empty.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::str::FromStr;
use tracewing_ctf::model::{
    Encoding, EnumerationClass, EventRecordClass, FieldClass, IntegerClass, StructureClass, TraceClass,
};
use tracewing_proc::{Stat, Status};
use tracewing_units::{Cpu, Pid, Tid};
use tracewing_vocabulary::kernel::{Asleep, StateDump};

/// `TASK_COMM_LEN`.
const COMM: usize = 16;

/// LTTng's `enum lttng_thread_type`, `lttng_execution_mode`, `lttng_execution_submode`,
/// `lttng_process_status`.
const TYPES: &[&str] = &["user_thread", "kernel_thread"];
const MODES: &[&str] = &["user_mode", "syscall", "trap", "irq", "softirq", "unknown"];
const SUBMODES: &[&str] = &["none", "unknown"];
const STATUSES: &[&str] = &["unnamed", "wait_fork", "wait_cpu", "exit", "zombie", "wait", "run", "dead"];
const MODE_UNKNOWN: i32 = 5;
const SUBMODE_UNKNOWN: i32 = 1;
const WAIT_CPU: i32 = 2;
const ZOMBIE: i32 = 4;
const WAIT: i32 = 5;
const DEAD: i32 = 7;

/// The ids of the classes of a state dump's events.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Classes {
    pub thread: u16,
    pub asleep: u16,
}

/// Adds the classes of a state dump's events to a kernel trace's.
pub(crate) fn add_classes(metadata: &mut TraceClass) -> Classes {
    let classes = &mut metadata.data_stream_classes[0].event_record_classes;
    let thread = classes.len() as u16;
    let asleep = thread + 1;
    classes.extend([thread_class(thread), asleep_class(asleep)]);
    Classes { thread, asleep }
}

fn asleep_class(id: u16) -> EventRecordClass {
    let mut class = EventRecordClass::new(u64::from(id), Asleep::NAME);
    let (tid, call) = (FieldClass::signed(32), FieldClass::string());
    class.payload =
        Some(StructureClass::new().with(Asleep::tid.name, tid).with(Asleep::system_call.name, call));
    class
}

fn thread_class(id: u16) -> EventRecordClass {
    let number = || FieldClass::signed(32);
    let character = IntegerClass::unsigned(8).with_encoding(Encoding::Utf8);
    let one_of = |labels: &[&str]| {
        let mut class = EnumerationClass::new(IntegerClass::signed(32));
        for (value, label) in (0..).zip(labels) {
            class.add((*label).to_owned(), value, value);
        }
        class
    };
    let mut class = EventRecordClass::new(u64::from(id), StateDump::NAME);
    class.payload = Some(
        StructureClass::new()
            .with(StateDump::tid.name, number())
            .with(StateDump::pid.name, number())
            .with(StateDump::ppid.name, number())
            .with(StateDump::name.name, FieldClass::array(character, COMM as u64))
            .with(StateDump::r#type.name, one_of(TYPES))
            .with(StateDump::mode.name, one_of(MODES))
            .with(StateDump::submode.name, one_of(SUBMODES))
            .with(StateDump::status.name, one_of(STATUSES))
            .with(StateDump::cpu.name, FieldClass::unsigned(32)),
    );
    class
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Thread {
    tid: Tid,
    process: Pid,
    parent: Pid,
    name: [u8; COMM],
    is_kernel: bool,
    status: i32,
    cpu: Cpu,
}

impl Thread {
    /// Event context and payload.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = context();
        for number in [self.tid.0, self.process.0, self.parent.0] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&self.name);
        for number in [i32::from(self.is_kernel), MODE_UNKNOWN, SUBMODE_UNKNOWN, self.status] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&self.cpu.0.to_le_bytes());
        out
    }

    /// A living thread of a process.
    fn of(tid: Tid, process: Pid) -> Option<Self> {
        Self::new(tid, process, &Stat::of_thread(process, tid)?)
    }

    /// A thread by its `stat`.
    fn new(tid: Tid, process: Pid, stat: &Stat) -> Option<Self> {
        let mut name = [0; COMM];
        let len = stat.name().len().min(COMM - 1);
        name[..len].copy_from_slice(&stat.name()[..len]);
        let status = match stat.state()? {
            // Whether it really has a CPU, the events around show; LTTng does the same.
            'R' => WAIT_CPU,
            'Z' => ZOMBIE,
            'X' | 'x' => DEAD,
            _ => WAIT,
        };
        Some(Self {
            tid,
            process,
            parent: stat.parent()?,
            name,
            is_kernel: stat.is_of_kernel()?,
            status,
            cpu: stat.cpu()?,
        })
    }
}

/// The context of an event of the state dump: the calling thread records it, in no interrupt.
pub(crate) fn context() -> Vec<u8> {
    let caller = rustix::thread::gettid().as_raw_nonzero().get();
    let mut out = Vec::with_capacity(65);
    out.push(0);
    out.extend_from_slice(&caller.to_le_bytes());
    out
}

/// All threads of the system.
pub(crate) fn all() -> Vec<Thread> {
    let mut threads = Vec::new();
    for process in numbers::<Pid>("/proc") {
        for tid in numbers::<Tid>(&format!("/proc/{process}/task")) {
            threads.extend(Thread::of(tid, process));
        }
    }
    threads
}

/// The threads of a process; none if it has ended.
pub(crate) fn threads_of(process: Pid) -> Vec<Tid> {
    numbers(&format!("/proc/{process}/task"))
}

/// Those of `tids` that live.
pub(crate) fn of(tids: &[Tid]) -> Vec<Thread> {
    let thread = |tid: &Tid| {
        // A thread that is not a process has a directory all the same; it is only not listed.
        Thread::of(*tid, Status::of(tid.as_process())?.process()?)
    };
    tids.iter().filter_map(thread).collect()
}

/// Those of `tids` that have ended, with their processes from `saved`, lines of `TID PROCESS`.
pub(crate) fn ended(tids: &BTreeSet<Tid>, saved: &str) -> Vec<Thread> {
    let thread = |line: &str| {
        let (tid, process) = line.split_once(' ')?;
        let (tid, process) = (tid.parse::<Tid>().ok()?, process.trim().parse().ok()?);
        let is_meant = tids.contains(&tid) && !Path::new("/proc").join(tid.to_string()).exists();
        let (name, is_kernel, status) = ([0; COMM], false, DEAD);
        is_meant.then_some(Thread { tid, process, parent: Pid(0), name, is_kernel, status, cpu: Cpu(0) })
    };
    saved.lines().filter_map(thread).collect()
}

/// The entries of a directory that are numbers.
fn numbers<N: FromStr>(dir: &str) -> Vec<N> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own_tid() -> Tid {
        Tid(rustix::thread::gettid().as_raw_nonzero().get())
    }

    #[test]
    fn a_thread_is_read_whatever_its_name() {
        let stat =
            b"7 (a) (b) R 1 2 3 0 -1 4194560 9 8 7 6 5 4 3 2 20 0 1 0 12 0 0 1 2 3 4 5 6 7 8 9 0 1 2 3 17 1 0";
        let parse = |stat: &[u8]| Thread::new(Tid(7), Pid(5), &Stat::parse(stat.to_vec())?);
        let thread = parse(stat).unwrap();
        assert_eq!((thread.tid, thread.process, thread.parent, thread.cpu), (Tid(7), Pid(5), Pid(1), Cpu(1)));
        assert_eq!(&thread.name[..8], b"a) (b\0\0\0");
        assert_eq!((thread.status, thread.is_kernel), (2, false));
        for cut in 0..stat.len() - 4 {
            assert_eq!(parse(&stat[..cut]), None, "{cut}");
        }
    }

    #[test]
    fn only_ended_threads_that_are_asked_for_are_reported() {
        let (gone, other, own) = (Tid(1 << 23), Tid(1 << 24), own_tid());
        let saved = format!("{own} {own}\n{gone} 5\n{other} 6\nnonsense\n7\n");
        let ended = ended(&BTreeSet::from([gone, own, Tid(7)]), &saved);
        let reported: Vec<_> =
            ended.iter().map(|thread| (thread.tid, thread.process, thread.status)).collect();
        assert_eq!(reported, [(gone, Pid(5), DEAD)]);
    }

    #[test]
    fn this_thread_lives_and_belongs_to_this_process() {
        let (own, process) = (own_tid(), Pid::from_unsigned(std::process::id()));
        for threads in [all(), of(&[own, Tid(1 << 23)])] {
            let found = threads.iter().find(|thread| thread.tid == own).unwrap();
            assert_eq!(found.process, process);
            assert!(!found.is_kernel);
        }
        // Names are any bytes.
        fs::write("/proc/thread-self/comm", b"M\xfcller").unwrap();
        assert_eq!(&of(&[own])[0].name[..6], b"M\xfcller");
        assert_eq!(of(&[Tid(1 << 23)]), [], "no such thread");
    }
}
