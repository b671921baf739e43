//! Servers that keep their own book (`crates/tokio/examples`), recorded, and comparisons of what commands
//! report with it.

#![allow(dead_code, reason = "each test file uses its part")]

use crate::harness::RunExt;
use crate::harness::{json, print};
use crate::recorded::build;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;
use tracewing_testing::Workspace;

/// Sums of ns, from the least to the most.
#[derive(Debug, Default, Clone, Copy)]
pub struct Range {
    pub least: u64,
    pub most: u64,
}

impl Range {
    fn add(&mut self, least: u64, most: u64) {
        self.least += least;
        self.most += most;
    }

    pub fn has(&self, ns: u64) -> bool {
        (self.least..=self.most).contains(&ns)
    }
}

/// What one operation of a lock was, in ns of the monotonic clock.
#[derive(Debug, Default, Clone)]
pub struct Sums {
    pub acquired: u64,
    pub waited: u64,
    pub given_up: u64,
    /// Tries that did not wait, and failed.
    pub refused: u64,
    /// By the stamps around calls and polls: from the least that they can be to the most.
    pub wait_ns: Range,
    pub hold_ns: Range,
}

/// The server's log: lines of an operation and its numbers.
pub struct Log(Vec<(String, Vec<u64>)>);

impl Log {
    pub fn read(file: &Path) -> Self {
        let line = |line: &str| {
            let mut words = line.split(' ');
            let operation = words.next().unwrap().to_owned();
            (operation, words.map(|word| word.parse().unwrap()).collect())
        };
        Log(fs::read_to_string(file).unwrap().lines().map(line).collect())
    }

    pub fn of(&self, operation: &str) -> impl Iterator<Item = &[u64]> {
        let operation = operation.to_owned();
        self.0.iter().filter(move |(of, _)| *of == operation).map(|(_, numbers)| &numbers[..])
    }

    /// Operations by what `key` makes of a lock's address and the line of the call.
    pub fn locks(&self, key: impl Fn(u64, u64) -> u64) -> BTreeMap<u64, Sums> {
        let mut sums: BTreeMap<u64, Sums> = BTreeMap::new();
        for line in self.of("lock") {
            let &[address, line, waited, asked, tried, polls, got, gives, gave] = line else {
                panic!("{line:?}")
            };
            let sum = sums.entry(key(address, line)).or_default();
            sum.acquired += 1;
            sum.waited += waited;
            sum.wait_ns.add(waited * polls.saturating_sub(tried), waited * (got - asked));
            sum.hold_ns.add(gives - got, gave - polls);
        }
        for line in self.of("gave_up") {
            let &[address, line, waited, asked, ended] = line else { panic!("{line:?}") };
            let sum = sums.entry(key(address, line)).or_default();
            sum.given_up += waited;
            sum.waited += waited;
            sum.wait_ns.add(0, waited * (ended - asked));
        }
        for line in self.of("refused") {
            let &[address, line] = line else { panic!("{line:?}") };
            sums.entry(key(address, line)).or_default().refused += 1;
        }
        sums
    }
}

/// A recording of the server, and its log.
pub struct Run {
    pub folder: tempfile::TempDir,
    pub log: Log,
    /// ns from before the recording to after it.
    pub took: u64,
    /// ns that the machine's host may have taken from its CPUs meanwhile: no event shows that, and clocks of
    /// CPU time leave it out.
    pub stolen: u64,
}

/// A server of `crates/tokio/examples`.
pub fn server(name: &str) -> PathBuf {
    build(&["-p", "tracewing-tokio", "--example", name]).join("examples").join(name)
}

/// The servers, their sources, and what each needs in addition to what all need.
const SERVERS: [(&str, &str, &str); 2] = [
    ("server", include_str!("../../../tokio/examples/server.rs"), ""),
    (
        "axum_server",
        include_str!("../../../tokio/examples/axum_server.rs"),
        "axum = { version = \"0.8\", default-features = false, features = [\"http1\", \"tokio\"] }\n\
         tracing = { version = \"0.1\", default-features = false, features = [\"attributes\", \"std\"] }\n\
         tracing-subscriber = { version = \"0.3\", default-features = false, features = [\"registry\", \"std\"] }\n",
    ),
];

/// The same server, built with `tokio_unstable`.
pub fn hooked(name: &str) -> PathBuf {
    let workspace = Workspace::new(env!("CARGO_TARGET_TMPDIR"), "hooked", &SERVERS.map(|(name, ..)| name));
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let [library, tokio, tracing] = ["tracewing", "tokio", "tracing"].map(|package| crates.join(package));
    for (name, source, more) in SERVERS {
        let dependencies = format!(
            "rustix = {{ version = \"1\", features = [\"thread\", \"time\"] }}\n\
             tokio = {{ version = \"1\", features = [\"net\", \"rt-multi-thread\", \"sync\", \"time\"] }}\n\
             tracewing = {{ path = {library:?} }}\n\
             tracewing-tokio = {{ path = {tokio:?} }}\n\
             tracewing-tracing = {{ path = {tracing:?} }}\n\
             {more}"
        );
        workspace.package(name, &format!("[[bin]]\nname = {name:?}"), source, &dependencies);
        workspace.module(name, "desk/mod.rs", include_str!("../../../tokio/examples/desk/mod.rs"));
    }
    let mut build = workspace.cargo("build");
    build.args(["-p", name]).env("RUSTFLAGS", "--cfg tokio_unstable").succeeds();
    workspace.target().join("debug").join(name)
}

pub fn record(server: &Path, how: &str, options: &[&str]) -> Run {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let mut record = crate::harness::tracewing();
    record.args(["record", "--clock", "mono", "-o"]).arg(folder.path().join("t")).args(options);
    let (begin, stolen) = (Instant::now(), tracewing_testing::stolen());
    record.arg("--").arg(server).arg(&log).arg(how).succeeds();
    let stolen = tracewing_testing::stolen() - stolen + tracewing_testing::hidden();
    let [took, stolen] = [begin.elapsed(), stolen].map(|time| time.as_nanos() as u64);
    Run { log: Log::read(&log), folder, took, stolen }
}

impl Run {
    pub fn trace(&self) -> PathBuf {
        self.folder.path().join("t")
    }

    /// What a command prints: its output, and what it warns of.
    pub fn text(&self, arguments: &[&str]) -> (String, String) {
        print(&self.trace(), arguments)
    }

    pub fn json(&self, arguments: &[&str]) -> Value {
        json(&self.trace(), arguments)
    }
}

pub fn number(row: &Value, field: &str) -> u64 {
    row[field].as_u64().unwrap_or_else(|| panic!("{field} of {row}"))
}

/// Rows of `locks`, by the locks' addresses.
pub fn locks(table: &Value) -> BTreeMap<u64, &Value> {
    let rows = table["locks"].as_array().unwrap().iter().filter(|row| row["kind"] != "futex");
    let address = |row: &Value| {
        u64::from_str_radix(row["lock"].as_str().unwrap().trim_start_matches("0x"), 16).unwrap()
    };
    rows.map(|row| (address(row), row)).collect()
}

/// Whether time on CPUs is what the program's clock of CPU time says, which leaves out what the host took.
pub fn is_cpu_time(row: &Value, of_cpu: Range) -> bool {
    most_cpu_time(row) >= of_cpu.least && number(row, "running_ns") <= of_cpu.most
}

/// The most that a row's time on CPUs may have been; interrupts are a part of it.
pub fn most_cpu_time(row: &Value) -> u64 {
    let [running, unknown, switches] =
        ["running_ns", "unknown_ns", "switches"].map(|column| row[column].as_u64().unwrap_or(0));
    running + unknown + tracewing_testing::charged_before(switches).as_nanos() as u64
}

/// What a thread or a process may do on CPUs before its first look at its clock and after its last one: it is
/// made and ends, writes its log, unmaps its memory. The clock of a process also has what it did before the
/// recording began.
const OVERHEAD_NS: u64 = 4_000_000;

/// What is recorded as time on CPUs where the clock of a thread's CPU time says so much, but for
/// what [`tracewing_testing::charged_before`] has. The host takes CPUs without an event.
pub fn thread_time(computed: u64, stolen: u64) -> Range {
    let apart = computed / 50;
    let least = computed.saturating_sub(apart + 300_000);
    Range { least, most: computed + apart + OVERHEAD_NS + stolen }
}

/// The same for the clock of a process.
pub fn process_time(computed: u64, stolen: u64) -> Range {
    let Range { least, most } = thread_time(computed, stolen);
    Range { least: least.saturating_sub(OVERHEAD_NS), most }
}

/// A row with the sum of what `rows` have in these columns.
pub fn sum_of<'v, const N: usize>(
    rows: impl Iterator<Item = &'v Value>,
    columns: [(&str, &str); N],
) -> Value {
    let mut sums = columns.map(|_| 0);
    for row in rows {
        for (sum, (of, _)) in sums.iter_mut().zip(columns) {
            *sum += row[of].as_u64().unwrap_or(0);
        }
    }
    columns.into_iter().zip(sums).map(|((_, column), sum)| (column.to_owned(), Value::from(sum))).collect()
}

/// Waits of tasks for tokio's mutex, as the periods say, against the program's own: what is known of a wait
/// begins after the poll that was without success and ends before the wake, after which the task waits for a
/// thread.
pub fn compare_waits(run: &Run, periods: &[Value]) {
    let (mut blocked, mut ready) = (0, 0);
    for period in periods {
        let times = &period["task"]["times"];
        // Each moment is in one of these, and no time on a lock in another one than `blocked_ns`.
        let parts = ["running_ns", "ready_ns", "blocked_ns", "nested_ns", "unknown_ns"];
        let parts = parts.map(|part| times[part].as_u64().unwrap_or(0));
        assert_eq!(parts.iter().sum::<u64>(), number(period, "duration_ns"), "{period}");
        let on = times["blocked_on"].as_array().unwrap().iter();
        assert_eq!(on.map(|on| number(on, "ns")).sum::<u64>(), parts[2], "{period}");
        let on = times["blocked_on"].as_array().unwrap().iter().find(|on| on["on"] == "mutex");
        blocked += on.map_or(0, |on| number(on, "ns"));
        ready += times["ready_ns"].as_u64().unwrap_or(0);
    }
    let table = run.json(&["locks"]);
    let locks = locks(&table);
    let logged = run.log.locks(|address, _| address);
    let mut mutexes = logged.iter().filter(|(address, _)| locks[address]["kind"] == "mutex");
    let (_, sums) = mutexes.next().expect("the ledger");
    let Range { least, most } = sums.wait_ns;
    // With the kernel's events, a task is also blocked while its worker waits for the cache's mutex.
    let of_workers: u64 = run.log.of("cache").map(|line| line[4] - line[3]).sum();
    assert!(blocked <= most + of_workers, "{blocked} ns: {sums:?}, {of_workers} ns of workers");
    assert!(
        blocked + ready + least / 4 + 2_000_000 + run.stolen >= least,
        "{blocked} + {ready} ns: {sums:?}"
    );
}

/// A row of `locks` against what the program says of the same operations.
pub fn compare(row: &Value, logged: &Sums) {
    let counts = ["acquired", "waited", "refused"].map(|field| number(row, field));
    assert_eq!(
        counts,
        [logged.acquired, logged.waited, logged.given_up + logged.refused],
        "{row} {logged:?}"
    );
    let wait = number(row, "wait_ns");
    assert!(logged.wait_ns.has(wait), "{row} {logged:?}");
    // Each wait is blamed on those that had the lock meanwhile, once.
    assert!(row["owner_wait_ns"].as_u64().unwrap_or(0) <= wait, "{row}");
    let (held, hold) = (number(row, "held"), number(row, "hold_ns"));
    assert_eq!(held, logged.acquired, "{row} {logged:?}");
    assert!(logged.hold_ns.has(hold), "{row} {logged:?}");
}

pub fn compare_locks(run: &Run) {
    compare_locks_of(&run.trace(), run);
}

pub fn compare_locks_of(trace: &Path, run: &Run) {
    let table = json(trace, &["locks"]);
    let rows = locks(&table);
    let logged = run.log.locks(|address, _| address);
    assert_eq!(logged.len(), 2);
    for (address, logged) in &logged {
        compare(rows[address], logged);
    }
    assert_eq!(table["incomplete"], 0, "{table}");
}

/// Each way to record the server that leaves nothing of its locks out.
pub const WAYS: [&[&str]; 4] = [
    &["--no-kernel", "--sub-buffers", "64"],
    &["--no-kernel", "--exclude", "user_thread:switch", "--exclude", "user_thread:create"],
    &[
        "--no-kernel",
        "-e",
        "user_thread:wait",
        "-e",
        "user_thread:acquired",
        "-e",
        "user_thread:given_up",
        "-e",
        "user_thread:released",
    ],
    &["--no-kernel", "--buffers", "process"],
];

pub const SMALL: [&str; 4] = ["--sub-buffers", "2", "--sub-buffer-size", "4K"];

/// Where events are missing, nothing is more than it was.
pub fn compare_what_is_left(trace: &Path, run: &Run) {
    let table = json(trace, &["locks"]);
    let rows = locks(&table);
    for (address, logged) in run.log.locks(|address, _| address) {
        let Some(row) = rows.get(&address) else { continue };
        let at_most = |column: &str, most: u64| {
            assert!(row[column].as_u64().unwrap_or(0) <= most, "{column}: {row} {logged:?}");
        };
        at_most("acquired", logged.acquired);
        at_most("wait_ns", logged.wait_ns.most);
        at_most("hold_ns", logged.hold_ns.most);
    }
}

/// Compares the time that the process had CPUs, by its own clock, with `threads`, which is returned, and
/// `breakdown`.
pub fn compare_cpu_time(run: &Run) -> Value {
    let &[process, computed] = run.log.of("process").next().unwrap() else { panic!("two numbers") };
    let threads = run.json(&["threads"]);
    let rows = threads["threads"].as_array().unwrap().iter().filter(|row| row["process"] == process);
    let columns = ["running_ns", "unknown_ns", "switches"].map(|column| (column, column));
    let mut sum = sum_of(rows, columns);
    assert!(is_cpu_time(&sum, process_time(computed, run.stolen)), "{sum} of {computed}: {threads}");
    let table = run.json(&["breakdown"]);
    let rows = table["rows"].as_array().unwrap().iter();
    let rows = rows.filter(|row| row["process"] == process && row["section"] == "inside");
    // Here, interrupts are not a part of the others.
    let broken_down =
        sum_of(rows, ["running_ns", "interrupted_ns", "unknown_ns"].map(|column| (column, column)));
    sum["running_ns"] = (number(&broken_down, "running_ns") + number(&broken_down, "interrupted_ns")).into();
    sum["unknown_ns"] = number(&broken_down, "unknown_ns").into();
    assert!(is_cpu_time(&sum, process_time(computed, run.stolen)), "{sum} of {computed}: {table}");
    threads
}

pub fn compare_latency(trace: &Path, run: &Run) -> Vec<Value> {
    let pairs = ["--begin", "server:request", "--end", "server:response", "--match", "id", "-n", "1000"];
    let mut table = json(trace, &[&["latency"], &pairs[..]].concat());
    let length = |line: &[u64]| (line[0], Range { least: line[3] - line[2], most: line[4] - line[1] });
    let lengths: BTreeMap<u64, Range> = run.log.of("request").map(length).collect();
    assert_eq!(number(&table, "count"), lengths.len() as u64, "{table}");
    assert_eq!(number(&table, "unmatched_begins") + number(&table, "unmatched_ends"), 0, "{table}");
    let Value::Array(periods) = table["worst"].take() else { panic!("{table}") };
    assert_eq!(periods.len(), lengths.len());
    for period in &periods {
        let id = period["key"][0][1].as_str().unwrap().parse().unwrap();
        assert!(lengths[&id].has(number(period, "duration_ns")), "{period}: {:?}", lengths[&id]);
    }
    periods
}

/// The lock of threads, and the function that computes while it is held.
pub fn compare_cache_and_search(trace: &Path, run: &Run) {
    let uses: Vec<&[u64]> = run.log.of("cache").collect();
    let count = uses.len() as u64;
    let sum = |of: fn(&[u64]) -> u64| uses.iter().map(|line| of(line)).sum::<u64>();
    let table = json(trace, &["locks"]);
    let row = locks(&table)[&uses[0][0]];
    assert_eq!(["acquired", "refused", "held"].map(|field| number(row, field)), [count, 0, count], "{row}");
    let hold = sum(|line| line[5] - line[4])..=sum(|line| line[6] - line[3]);
    assert!(hold.contains(&number(row, "hold_ns")), "{row}: {hold:?}");
    assert!(number(row, "wait_ns") <= sum(|line| line[4] - line[3]), "{row}");
    let table = json(trace, &["functions"]);
    let mut rows = table["functions"].as_array().unwrap().iter();
    let is_search = |row: &&Value| row["function"].as_str().is_some_and(|name| name.ends_with("::search"));
    let row = rows.find(is_search).unwrap_or_else(|| panic!("{table}"));
    assert_eq!(number(row, "calls"), count, "{row}");
    let total = count * SEARCH_NS..=sum(|line| line[5] - line[4]);
    assert!(total.contains(&number(row, "total_ns")), "{row}: {total:?}");
}

/// What a search computes at least.
const SEARCH_NS: u64 = 100_000;

/// A thread's or task's path from `begin` to `end` has no gaps; gives its length.
pub fn path_without_gaps(trace: &Path, arguments: &[&str]) -> u64 {
    let path = json(trace, &[&["critical-path"], arguments].concat());
    let length = number(&path, "end_ns") - number(&path, "begin_ns");
    let steps = path["steps"].as_array().unwrap();
    assert_eq!(
        steps.iter().map(|step| number(step, "duration_ns")).sum::<u64>(),
        length,
        "{arguments:?}: {path}"
    );
    assert!(steps.windows(2).all(|pair| pair[0]["end_ns"] == pair[1]["begin_ns"]), "{arguments:?}: {path}");
    length
}
