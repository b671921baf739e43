//! PostgreSQL: a process for each connection, none built for it, under the load of `pgbench`.

use super::*;
use harness::traceable;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Child;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// PostgreSQL does not run as root.
const USER: u32 = 65534;

/// The folder of PostgreSQL's programs.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let folders = versions.map(|version| version.path().join("bin"));
    folders
        .filter(|folder| ["initdb", "postgres", "pgbench"].iter().all(|name| folder.join(name).exists()))
        .max()
}

struct Postgres {
    folder: PathBuf,
    programs: PathBuf,
    port: String,
    server: Option<Child>,
}

impl Postgres {
    /// A command of its, as the user that it runs as.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        command.current_dir(&self.folder).uid(USER).gid(USER).env("LC_ALL", "C").env("HOME", &self.folder);
        command
    }

    fn client(&self, arguments: &[&str]) -> Command {
        let mut command = self.command("pgbench");
        command.args(["-h", "127.0.0.1", "-p", &self.port, "-U", "postgres"]).args(arguments).arg("postgres");
        command
    }

    fn start(folder: &Path, programs: PathBuf) -> Self {
        chown(folder, Some(USER), Some(USER)).unwrap();
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
        let port = free_port().to_string();
        let mut this = Self { folder: folder.to_owned(), programs, port, server: None };
        this.command("initdb").args(["-D", "data", "-A", "trust", "-U", "postgres", "--no-sync"]).succeeds();
        let mut server = this.command("postgres");
        server.args([
            "-D",
            "data",
            "-p",
            &this.port,
            "-c",
            "fsync=off",
            "-c",
            "listen_addresses=127.0.0.1",
            "-k",
        ]);
        server.arg(folder).stdout(Stdio::null()).stderr(Stdio::null());
        this.server = Some(server.spawn().unwrap());
        tracewing_testing::wait_until("PostgreSQL answers", || {
            this.client(&["-i", "-q"]).ran().status.success()
        });
        this
    }

    fn pid(&self) -> u32 {
        self.server.as_ref().map_or(0, Child::id)
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if let Some(mut server) = self.server.take() {
            tracewing_testing::signal(server.id(), libc::SIGINT);
            let _ = server.wait();
        }
    }
}

#[test]
fn postgresql_loses_no_transaction() {
    let Some(programs) = programs() else {
        return tracewing_testing::skip(
            tracewing_testing::Cause::Program("postgres"),
            "PostgreSQL is not installed",
        );
    };
    if !tracewing_testing::is_root() || !traceable() {
        return tracewing_testing::skip(tracewing_testing::Cause::Root, "PostgreSQL runs as another user");
    }
    let folder = tempfile::tempdir().unwrap();
    let postgres = Postgres::start(folder.path(), programs);
    let (ends, transactions) = (AtomicBool::new(false), AtomicU64::new(0));
    // Connections, and with them processes of the server, end and begin during the recordings.
    let load = || {
        while !ends.load(Ordering::Relaxed) {
            transactions.fetch_add(transactions_of(&postgres), Ordering::Relaxed);
        }
    };
    let traces = tempfile::tempdir().unwrap();
    let mut seen = Seen::default();
    let look = |trace: &Path, _: &[u32], way: &[&str]| {
        seen.look(trace, way, "postgresql:query__start");
        if !way.contains(&"--no-kernel") {
            let rows = harness::json(trace, &["threads"]);
            let rows = rows["threads"].as_array().unwrap();
            rows.iter().for_each(|row| assert_eq!(row["name"], "postgres", "{row}"));
        }
        seen.is_complete(2)
    };
    let probe = format!("{}:postgresql:query__start", postgres.programs.join("postgres").display());
    let probe = ["--usdt", &probe];
    let sum = std::thread::scope(|scope| {
        scope.spawn(load);
        // Also where this fails, the clients end.
        let sum = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            record(traces.path(), None, &probe, || family(postgres.pid()), look)
        }));
        ends.store(true, Ordering::Relaxed);
        sum
    });
    let sum = sum.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    let transactions = transactions.into_inner();
    assert!(transactions > 10, "{transactions}");
    // A short recording may lie between the end of one client and the begin of the next.
    assert!(seen.is_complete(2), "{sum}: {seen:?}");
    println!("PostgreSQL: {sum}; {transactions} transactions, 0 failed");
}

/// A second of load: how many transactions there were, none of which has failed.
fn transactions_of(postgres: &Postgres) -> u64 {
    let output = postgres.client(&["-n", "-c", "4", "-T", "1"]).ran();
    let text = output.text();
    assert!(output.status.success(), "{text}{}", output.notes());
    let line = |begin: &str| {
        let line = text.lines().find(|line| line.starts_with(begin)).unwrap_or_else(|| panic!("{text}"));
        line[begin.len()..]
            .trim()
            .split(' ')
            .next()
            .unwrap()
            .parse::<u64>()
            .unwrap_or_else(|_| panic!("{line}"))
    };
    assert_eq!(line("number of failed transactions:"), 0, "{text}");
    line("number of transactions actually processed:")
}
