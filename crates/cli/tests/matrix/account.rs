//! What a program's own log says of it, in the terms of the commands.

use super::log;
use super::server_log::{Range, Run, process_time, thread_time};
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

/// What a request was.
#[derive(Debug, Default)]
pub struct Request {
    pub ns: Range,
    /// When the events of its begin and end were recorded, on the monotonic clock.
    pub stamps: [Range; 2],
    /// The task that handled it, where the program knows that.
    pub task: Option<u64>,
}

impl Request {
    fn of(stamps: [u64; 4], task: Option<u64>) -> Self {
        let [begins, began, ends, ended] = stamps;
        Request {
            ns: Range { least: ends - began, most: ended - begins },
            stamps: [Range { least: begins, most: began }, Range { least: ends, most: ended }],
            task,
        }
    }
}

/// How many events of a class there were, and which command then reports all that they say.
pub type Count = (&'static str, u64, &'static str);

/// All sums are in ns, from the least that they can be to the most.
#[derive(Debug)]
pub struct Account {
    /// CPU time by thread.
    pub threads: BTreeMap<u64, Range>,
    /// Number of the process and its CPU time, where the program logs it.
    pub process: Option<(u64, Range)>,
    /// From before the recording to after it.
    pub took: u64,
    pub locks: BTreeMap<u64, Lock>,
    pub tasks: BTreeMap<u64, Task>,
    /// End of the name, calls, and time.
    pub function: (&'static str, u64, Range),
    /// Begin, end and field of requests, and each of them.
    pub requests: ([&'static str; 3], BTreeMap<u64, Request>),
    pub counts: Vec<Count>,
}

/// Requests of a connection.
const REQUESTS: u64 = 6;

impl Account {
    pub fn of_server(run: &Run) -> Self {
        let Run { log, took, stolen, .. } = run;
        let (took, stolen) = (*took, *stolen);
        let mut locks = BTreeMap::new();
        for (address, sums) in log.locks(|address, _| address) {
            let (wait_ns, hold_ns) = (sums.wait_ns, sums.hold_ns);
            locks.insert(address, Lock { acquired: sums.acquired, wait_ns, hold_ns });
        }
        let acquired = locks.values().map(|lock| lock.acquired).sum();
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
        let calls = log.of("call").count() as u64;
        // Of an axum server's tasks more is polled than the log has, and each future of it is a request.
        let is_task = |line: &&[u64]| line[3] != 0 && calls == 0;
        let task = |line: &[u64]| {
            let busy_ns = Range { least: line[2].saturating_sub(1_000_000), most: took };
            (line[3], Task { polls: line[1], busy_ns })
        };
        let connections: BTreeMap<u64, u64> =
            log.of("polls").filter(is_task).map(|line| (line[0], line[3])).collect();
        let &[pid, computed] = log.of("process").next().unwrap() else { panic!("two numbers") };
        let request = |line: &[u64]| {
            let &[id, begins, began, ends, ended] = line else { panic!("{line:?}") };
            let task = connections.get(&(id / REQUESTS)).copied();
            (id, Request::of([begins, began, ends, ended], task))
        };
        let requests: BTreeMap<u64, Request> = log.of("request").map(request).collect();
        let (handled, searches) = (requests.len() as u64, function.1);
        Self {
            threads: log.of("client").map(|line| (line[0], thread_time(line[1], stolen))).collect(),
            process: Some((pid, process_time(computed, stolen))),
            took,
            locks,
            tasks: log.of("polls").filter(is_task).map(task).collect(),
            function,
            requests: (["server:request", "server:response", "id"], requests),
            counts: vec![
                ("server:request", handled, "latency"),
                ("server:response", handled, "latency"),
                ("client:call", calls, "calls"),
                ("client:answer", calls, "calls"),
                ("lock:acquired", searches, "locks"),
                ("lock:released", searches, "locks"),
                ("user_thread:acquired", acquired, "locks"),
                ("user_thread:released", acquired, "locks"),
                ("function:entry:", searches, "functions"),
                ("function:exit:", searches, "functions"),
            ],
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
        let lines = log.0.iter().filter(|(operation, ..)| operation == "request");
        let requests: BTreeMap<u64, Request> =
            lines.map(|(_, id, stamps)| (*id, Request::of(*stamps, None))).collect();
        let (handled, tasks) = (requests.len() as u64, log.of("poll").len() as u64);
        Self {
            threads: of_all("cpu")
                .map(|(tid, computed)| (tid, thread_time(computed.most, *stolen)))
                .collect(),
            process: None,
            took: *took,
            locks: BTreeMap::from([(address, lock)]),
            tasks: of_all("poll").map(task).collect(),
            function: ("look_up", calls.count, range(&calls)),
            requests: (["clerks:request", "clerks:response", "id"], requests),
            counts: vec![
                ("clerks:request", handled, "latency"),
                ("clerks:response", handled, "latency"),
                ("function:entry", calls.count, "functions"),
                ("function:exit", calls.count, "functions"),
                ("user_thread:switch", 4 * tasks, "tasks"),
            ],
        }
    }
}
