//! Tasks and locks of a program that runs when a recorder attaches to it
//! (`crates/tokio/tests/programs/resident_tasks.rs`): what began before is known by name, its times are not.

use super::*;
use crate::harness::{RunExt, json, tracewing};
use serde_json::Value;
use std::path::PathBuf;
use std::sync::LazyLock;

static TASKS: LazyLock<PathBuf> = LazyLock::new(|| {
    recorded::build(&["-p", "tracewing-tokio", "--example", "resident_tasks"]).join("examples/resident_tasks")
});

/// What the program is asked to do while it is recorded.
const ORDERS: [&str; 6] = ["serve 2", "release", "unlock", "born", "abort", "serve 1"];

/// The row of a table in which this column has this value.
fn row<'v>(rows: &'v Value, column: &str, value: &str) -> &'v Value {
    let mut fit = rows.as_array().unwrap().iter().filter(|row| row[column] == value);
    let row = fit.next().unwrap_or_else(|| panic!("no {value}: {rows}"));
    assert!(fit.next().is_none(), "{value} twice: {rows}");
    row
}

/// Starts the program, and waits until all its threads wait.
fn start() -> Resident {
    let program = Resident::of(&mut Command::new(&*TASKS));
    wait_until("the thread waits for its lock", || {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", program.pid)).unwrap().flatten();
        tasks.map(|task| task.path()).any(|task| {
            let read = |name| std::fs::read_to_string(task.join(name)).unwrap_or_default();
            read("comm") == "queuer\n" && read("syscall").starts_with(&format!("{} ", libc::SYS_futex))
        })
    });
    program
}

#[test]
fn tasks_and_locks_of_before() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = start();
    let recorder = Recorder::start(&folder.path().join("attached"), program.pid, &[], 1);
    for order in ORDERS {
        assert_eq!(program.order(order), "done");
    }
    let attached = recorder.trace().to_owned();
    let said = recorder.stop();
    assert!(said.contains("\"lost_events\":0"), "{said}");
    program.end();
    let (started, orders) = (folder.path().join("started"), folder.path().join("orders"));
    std::fs::write(&orders, ORDERS.join("\n")).unwrap();
    let mut recorder = tracewing();
    recorder.args(["record", "--no-kernel", "-q", "-o"]).arg(&started);
    recorder.args(["--", "sh", "-c", "exec \"$0\" <\"$1\""]).arg(&*TASKS).arg(orders).succeeds();

    let [attached_tasks, started_tasks] = [&attached, &started].map(|trace| {
        let mut table = json(trace, &["tasks", "-n", "100"]);
        table["tasks"].take()
    });
    let number =
        |row: &Value, column: &str| row[column].as_u64().unwrap_or_else(|| panic!("{column}: {row}"));
    // One poll may get several messages.
    let serves = 1..=3;
    for (name, polls) in
        [("keeper", 1..=1), ("waiter", 1..=1), ("aborted", 0..=0), ("resident_tasks::serve", serves)]
    {
        let task = row(&attached_tasks, "name", name);
        assert!(polls.contains(&number(task, "polls")), "{task}");
        // Up to its first event.
        assert!(number(task, "unknown_ns") > 0, "{task}");
        if name != "resident_tasks::serve" {
            assert_eq!(number(task, "idle_ns") + number(task, "scheduled_ns"), 0, "{task}");
        }
    }
    for name in ["born", "born-child"] {
        let rows = [row(&attached_tasks, "name", name), row(&started_tasks, "name", name)];
        let [attached, started] =
            rows.map(|task| ["polls", "delays", "unknown_ns"].map(|column| number(task, column)));
        assert_eq!(attached, started, "{name}: {rows:?}");
        assert_eq!(attached[2], 0, "{rows:?}");
    }
    assert_eq!(attached_tasks.as_array().unwrap().len(), 6, "{attached_tasks}");

    // Of the mutex, `keeper` had it and `waiter` waited for it before: neither time is known.
    let mut locks = json(&attached, &["locks"]);
    let rows = locks["locks"].take();
    let mutex = row(&rows, "kind", "mutex");
    let counts = ["acquired", "waited", "refused", "held"].map(|column| number(mutex, column));
    assert_eq!(counts, [3, 2, 0, 3], "{mutex}");
    // The only wait whose beginning is known.
    let waits = ["wait_min_ns", "wait_max_ns", "wait_avg_ns", "wait_ns"].map(|column| number(mutex, column));
    assert!(waits.iter().all(|wait| *wait == waits[0]), "{mutex}");
    // Of the lock of threads, both holds are without beginning: one of before, and one after a wait of
    // before.
    assert_eq!(rows.as_array().unwrap().len(), 1, "{rows}");
    assert_eq!(locks["incomplete"], 4, "{locks}");
}

/// Names of the tasks of a server that has run for a while (`examples/quotes`).
#[test]
fn a_servers_tasks_have_names() {
    let quotes = recorded::build(&["-p", "quotes"]).join("quotes");
    let mut server = Command::new(quotes);
    let mut server = server.args(["--seconds", "600"]).stdout(std::process::Stdio::null()).spawn().unwrap();
    let pid = server.id();
    // How often each of the clients has waited for an answer, or for its next request.
    let waits = || -> Vec<u64> {
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
        let count = |status: String| {
            let is_client = status.lines().next() == Some("Name:\tquotes");
            let mut lines = status.lines().filter_map(|line| line.strip_prefix("voluntary_ctxt_switches:\t"));
            is_client.then(|| lines.next().unwrap().parse().unwrap())
        };
        tasks
            .filter_map(|task| std::fs::read_to_string(task.path().join("status")).ok())
            .filter_map(count)
            .collect()
    };
    // The first thread waits for the clients all the time.
    let most = |waits: Vec<u64>| {
        let mut waits = waits;
        waits.sort_unstable();
        waits.split_off(waits.len().saturating_sub(8))
    };
    wait_until("all clients are connected", || most(waits()).first().is_some_and(|least| *least > 10));
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::start(&folder.path().join("t"), pid, &[], 1);
    let before = most(waits());
    wait_until("each client has been answered", || {
        most(waits()).iter().zip(&before).all(|(now, before)| *now > before + 20)
    });
    let trace = recorder.trace().to_owned();
    recorder.stop();
    server.kill().unwrap();
    server.wait().unwrap();
    let table = json(&trace, &["tasks", "-n", "100"]);
    for number in 0..8 {
        let task = row(&table["tasks"], "name", &format!("connection/{number}"));
        assert!(task["polls"].as_u64().unwrap() > 0, "{task}");
    }
}
