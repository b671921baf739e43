//! What a program's own log says of it, in the terms of the commands.

use super::log;
use super::server_log::{Range, Run, cpu_time};
use std::collections::BTreeMap;

/// What a lock's operations were.
#[derive(Debug, Default)]
pub struct Lock {
    pub acquired: u64,
    pub wait_ns: Range,
    pub hold_ns: Range,
}

/// What a task was.
#[derive(Debug)]
pub struct Task {
    pub polls: u64,
    pub busy_ns: Range,
}

/// All sums are in ns, from the least that they can be to the most.
#[derive(Debug)]
pub struct Account {
    /// CPU time by thread.
    pub threads: BTreeMap<u64, Range>,
    /// Number of the process and its CPU time, where the program logs it.
    pub process: Option<(u64, Range)>,
    /// From before the recording to after it.
    pub took: u64,
    /// By address.
    pub locks: BTreeMap<u64, Lock>,
    /// By number.
    pub tasks: BTreeMap<u64, Task>,
    /// End of the name, calls, and time.
    pub function: (&'static str, u64, Range),
    /// Begin, end and field of periods, and how long each is.
    pub periods: ([&'static str; 3], BTreeMap<u64, Range>),
}

impl Account {
    pub fn of_server(run: &Run) -> Self {
        let Run { log, took, stolen, .. } = run;
        let (took, stolen) = (*took, *stolen);
        let mut locks = BTreeMap::new();
        for (address, sums) in log.locks(|address, _| address) {
            let (wait_ns, hold_ns) = (sums.wait_ns, sums.hold_ns);
            locks.insert(address, Lock { acquired: sums.acquired, wait_ns, hold_ns });
        }
        let mut function = ("::search", 0, Range::default());
        for line in log.of("cache") {
            let &[address, _, _, asked, got, gives, gave] = line else { panic!("{line:?}") };
            let lock: &mut Lock = locks.entry(address).or_default();
            lock.acquired += 1;
            lock.wait_ns.most += got - asked;
            lock.hold_ns.least += gives - got;
            lock.hold_ns.most += gave - asked;
            function.1 += 1;
            function.2.least += 100_000;
            function.2.most += gives - got;
        }
        // Of an axum server's tasks more is polled than the log has.
        let is_task = |line: &&[u64]| line[3] != 0 && log.of("call").next().is_none();
        let task = |line: &[u64]| {
            (
                line[3],
                Task {
                    polls: line[1],
                    busy_ns: Range { least: line[2].saturating_sub(1_000_000), most: took },
                },
            )
        };
        let &[pid, computed] = log.of("process").next().unwrap() else { panic!("two numbers") };
        let period = |line: &[u64]| (line[0], Range { least: line[3] - line[2], most: line[4] - line[1] });
        Self {
            threads: log.of("client").map(|line| (line[0], cpu_time(line[1], stolen))).collect(),
            process: Some((pid, cpu_time(computed, stolen))),
            took,
            locks,
            tasks: log.of("polls").filter(is_task).map(task).collect(),
            function,
            periods: (["server:request", "server:response", "id"], log.of("request").map(period).collect()),
        }
    }

    pub fn of_clerks(run: &log::Run) -> Self {
        let log::Run { log, stolen, took, .. } = run;
        let range = |sums: &log::Sums| Range { least: sums.least, most: sums.most };
        let of_all = |operation: &str| log.of(operation).into_iter();
        let (address, wait) = log.only("wait");
        let (_, hold) = log.only("hold");
        let (_, calls) = log.only("look_up");
        let lock = Lock { acquired: wait.count, wait_ns: range(&wait), hold_ns: range(&hold) };
        let task =
            |(task, polls): (u64, log::Sums)| (task, Task { polls: polls.count, busy_ns: range(&polls) });
        Self {
            threads: of_all("cpu").map(|(tid, computed)| (tid, cpu_time(computed.most, *stolen))).collect(),
            process: None,
            took: *took,
            locks: BTreeMap::from([(address, lock)]),
            tasks: of_all("poll").map(task).collect(),
            function: ("look_up", calls.count, range(&calls)),
            periods: (
                ["clerks:request", "clerks:response", "id"],
                of_all("request").map(|(id, sums)| (id, range(&sums))).collect(),
            ),
        }
    }
}
