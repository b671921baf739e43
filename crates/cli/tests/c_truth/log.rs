//! What the program says that it did, and its recording.

#![allow(dead_code, reason = "each test file uses its part")]

use super::*;
use std::time::Instant;

/// What the log says of the operations on one object, in ns.
#[derive(Debug, Default, Clone)]
pub struct Sums {
    pub count: u64,
    pub least: u64,
    pub most: u64,
}

impl Sums {
    pub fn has(&self, recorded: u64) -> bool {
        (self.least..=self.most).contains(&recorded)
    }
}

/// Lines of the log: operation, object, stamps before and after the beginning, before and after the end.
pub struct Log(pub Vec<(String, u64, [u64; 4])>);

impl Log {
    pub fn read(file: &Path) -> Self {
        let line = |line: &str| {
            let mut words = line.split(' ');
            let operation = words.next().unwrap().to_owned();
            let mut numbers = words.map(|word| word.parse().unwrap());
            let of = numbers.next().unwrap();
            (operation, of, std::array::from_fn(|_| numbers.next().unwrap()))
        };
        let mut lines: Vec<_> = fs::read_to_string(file).unwrap().lines().map(line).collect();
        // A lock is not had before the thread that had it before gives it back.
        lines.sort_by_key(|(_, _, stamps): &(_, _, [u64; 4])| stamps[1]);
        let mut gives = 0;
        for (_, _, stamps) in lines.iter_mut().filter(|(operation, ..)| operation == "hold") {
            stamps[0] = stamps[0].max(gives);
            gives = stamps[2];
        }
        Log(lines)
    }

    /// Operations of a kind, by their objects.
    pub fn of(&self, operation: &str) -> BTreeMap<u64, Sums> {
        let mut sums: BTreeMap<u64, Sums> = BTreeMap::new();
        for (_, of, stamps) in self.0.iter().filter(|(is, ..)| is == operation) {
            let sum = sums.entry(*of).or_default();
            sum.count += 1;
            sum.least += stamps[2] - stamps[1];
            sum.most += stamps[3] - stamps[0];
        }
        assert!(!sums.is_empty(), "{operation}");
        sums
    }

    /// The only one of a kind.
    pub fn only(&self, operation: &str) -> (u64, Sums) {
        let of = self.of(operation);
        assert_eq!(of.len(), 1, "{operation}");
        of.into_iter().next().unwrap()
    }
}

/// A recording of the program, and its log.
pub struct Run {
    pub folder: tempfile::TempDir,
    pub log: Log,
    /// ns that the machine's host may have taken from its CPUs: clocks of CPU time leave that out.
    pub stolen: u64,
    /// ns from before the recording to after it.
    pub took: u64,
}

/// The program, linked as a user's is, with the static library; `None` where there is no compiler.
pub fn program(folder: &Path) -> Option<PathBuf> {
    program_of(folder, "clerks", &["-O1", "-Wl,--strip-debug"])
}

/// The same of another one of `crates/capi/tests/programs`.
pub fn program_of(folder: &Path, name: &str, options: &[&str]) -> Option<PathBuf> {
    build(&["-p", "tracewing-preload"]);
    let library = build(&["-p", "tracewing-capi"]).join("libtracewing_capi.a");
    let capi = Path::new(env!("CARGO_MANIFEST_DIR")).join("../capi");
    let program = folder.join(name);
    let mut gcc = Command::new("gcc");
    gcc.args(options).args(["-pthread", "-finstrument-functions", "-Wall", "-Wextra", "-Werror", "-I"]);
    gcc.arg(capi.join("include"));
    gcc.arg(capi.join(format!("tests/programs/{name}.c")))
        .arg(library)
        .args(["-lm", "-ldl", "-o"])
        .arg(&program);
    let Ok(output) = gcc.output() else {
        tracewing_testing::skip(tracewing_testing::Cause::Program("gcc"), "there is no gcc");
        return None;
    };
    assert!(output.status.success(), "{}", output.notes());
    Some(program)
}

pub fn record(options: &[&str]) -> Option<Run> {
    let folder = tempfile::tempdir().unwrap();
    let program = program(folder.path())?;
    Some(record_in(folder, &program, options))
}

/// Records the program, or one that executes it, into a folder.
pub fn record_in(folder: tempfile::TempDir, program: &Path, options: &[&str]) -> Run {
    let log = folder.path().join("log");
    let mut record = harness::tracewing();
    record
        .args(["record", "--clock", "mono", "--locks", "--functions=look_up", "-o"])
        .arg(folder.path().join("t"));
    let (begin, stolen) = (Instant::now(), tracewing_testing::stolen());
    record.args(options).arg("--").arg(program).arg(&log).succeeds();
    let stolen = tracewing_testing::stolen() - stolen + tracewing_testing::hidden();
    let [took, stolen] = [begin.elapsed(), stolen].map(|time| time.as_nanos() as u64);
    Run { log: Log::read(&log), folder, stolen, took }
}

impl Run {
    pub fn trace(&self) -> PathBuf {
        self.folder.path().join("t")
    }
}

pub fn number(row: &Value, field: &str) -> u64 {
    row[field].as_u64().unwrap_or_else(|| panic!("{field} of {row}"))
}

pub fn rows(trace: &Path, arguments: &[&str]) -> Vec<Value> {
    let mut table = json(trace, arguments);
    match table[arguments[0]].take() {
        Value::Array(rows) => rows,
        other => panic!("{arguments:?}: {other}"),
    }
}

/// How long each lasted, by what the program calls it.
pub fn periods(trace: &Path, begin: &str, end: &str, by: &str) -> (Value, BTreeMap<u64, u64>) {
    let table = json(trace, &["latency", "--begin", begin, "--end", end, "--match", by, "-n", "1000"]);
    let key = |row: &Value| row["key"][0][1].as_str().unwrap().parse().unwrap();
    let worst =
        table["worst"].as_array().unwrap().iter().map(|row| (key(row), number(row, "duration_ns"))).collect();
    (table, worst)
}
