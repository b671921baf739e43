//! `tracewing breakdown` compared with other accounts of the same time: strace's calls, the kernel's own
//! sums, the wall clock on all CPUs. Needs root.

#[path = "kernel_common/mod.rs"]
mod common;
mod harness;
mod idle;

use common::{play, player, record, role_is, tracewing};
use harness::{Json, Printed, RunExt, traceable};
use rustix::io::{read, write};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::sync::{Condvar, Mutex};
use tracewing_testing::installed;

/// Times a token goes to and fro.
const TURNS: usize = 2000;

fn rows(folder: &Path, filter: &[&str]) -> Vec<Value> {
    let output = tracewing(folder).args(["breakdown", "t", "--format", "json"]).args(filter).succeeds();
    let mut table: Value = output.json();
    match table["rows"].take() {
        Value::Array(rows) => rows,
        other => panic!("{other}"),
    }
}

fn ns(row: &Value, name: &str) -> u64 {
    row[name].as_u64().unwrap_or_else(|| panic!("{name} of {row}"))
}

/// Records, and gives what the command printed; `None` where nothing of the kernel was recorded, or events
/// were lost.
fn recorded(command: &mut Command) -> Option<String> {
    let output = command.succeeds();
    let summary = common::summary(&output);
    if summary["lost_events"] != 0 {
        tracewing_testing::skip(
            tracewing_testing::Cause::Listed("events lost"),
            format_args!("events were lost: {summary}"),
        );
        return None;
    }
    Some(output.text())
}

/// How often a process called what, by strace's file about it.
fn calls(log: &str) -> BTreeMap<String, u64> {
    let mut calls = BTreeMap::new();
    for line in log.lines() {
        let Some((name, _)) = line.split_once('(').filter(|_| line.starts_with(char::is_alphabetic)) else {
            continue;
        };
        *calls.entry(name.to_owned()).or_default() += 1;
    }
    calls
}

#[test]
fn system_calls_are_those_that_strace_counts() {
    if !traceable() || !installed(&["strace", "dd"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let work = "dd if=/dev/zero of=copy bs=100 count=1234 2>/dev/null; true";
    let strace = ["strace", "-ff", "-o", "log", "sh", "-c", work];
    let mut traced = Command::new(strace[0]);
    // `dd` asks for more where signals are ignored.
    tracewing_testing::with_default_signals(&mut traced);
    let traced = traced.args(&strace[1..]).current_dir(folder.path()).ran();
    if !traced.status.success() {
        return tracewing_testing::skip(
            tracewing_testing::Cause::Program("strace"),
            "strace cannot trace here",
        );
    }
    let logs =
        fs::read_dir(folder.path()).unwrap().flatten().filter(|entry| entry.path().extension().is_some());
    let logs = logs.map(|entry| fs::read_to_string(entry.path()).unwrap());
    let log = logs
        .filter(|log| log.contains("execve(") && log.contains("\"count=1234\"") && !log.contains("\"sh\""));
    let wanted = log.map(|log| calls(&log)).next().expect("strace has followed dd");
    assert!(wanted["write"] >= 1234, "{wanted:?}");

    let Some(_) = recorded(&mut record(folder.path(), &[], &["sh", "-c", work])) else { return };
    let mut found = BTreeMap::new();
    for row in rows(folder.path(), &[]) {
        let name = row["activity"].as_str().unwrap();
        if row["name"] == "dd"
            && row["section"] == "inside"
            && row["calls"].as_u64().is_some_and(|calls| calls > 0)
        {
            // The kernel calls them so, where older ones of the same name are there.
            let name = match name {
                "newfstat" | "newuname" | "newstat" | "newlstat" => &name[3..],
                name => name,
            };
            found.insert(name.to_owned(), ns(&row, "calls"));
        }
    }
    assert_eq!(found, wanted);
}

#[test]
fn times_are_the_wall_time_of_all_cpus() {
    if !traceable() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let work = "for i in 1 2 3 4 5 6 7 8 9 10; do ls -lR /etc | sort | wc > words; sleep 0.1; done; sync";
    let Some(_) = recorded(&mut record(folder.path(), &["--system-wide"], &["sh", "-c", work])) else {
        return;
    };
    let output = tracewing(folder.path()).args(["breakdown", "t", "--format", "json"]).ran();
    let table: Value = output.json();
    let whole = (ns(&table, "duration_ns") * ns(&table, "cpus")) as f64;
    // SAFETY: a number.
    assert_eq!(ns(&table, "cpus") as i64, unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) });
    let (mut inside, mut machine) = (0, BTreeMap::new());
    for row in table["rows"].as_array().unwrap() {
        match row["section"].as_str().unwrap() {
            "inside" if row["running_ns"].is_u64() => {
                inside += ns(row, "running_ns") + ns(row, "interrupted_ns")
            }
            "machine" => drop(machine.insert(row["activity"].as_str().unwrap(), ns(row, "running_ns"))),
            _ => {}
        }
    }
    let all: u64 = machine.values().sum();
    eprintln!("{machine:?} of {whole} ns, {:.4} of it", all as f64 / whole);
    assert!((0.99..=1.01).contains(&(all as f64 / whole)), "{machine:?} of {whole} ns");
    // Some kernels leave out switches from idle threads, as a note says: then, the time up to the next switch
    // is unknown, of a thread that computes up to its whole turn.
    let is_bounded = !output.notes().contains("recorded no switch from the idle thread");
    assert!(!is_bounded || machine["unknown"] as f64 <= 0.02 * whole, "{machine:?} of {whole} ns");
    // Processes and idle CPUs together are the same.
    let others = machine["idle"] + machine["interrupts"];
    assert!(
        inside <= all && all <= inside + others + machine["unknown"],
        "{inside} ns in processes, {machine:?}"
    );
}

/// One thread's own account of its turns: how often it slept.
fn slept() -> i64 {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    line.expect("such a line").trim().parse().unwrap()
}

/// Two threads take turns, in each of three ways, and say how often they slept in that.
#[test]
fn turns() {
    if !role_is("turns") {
        return;
    }
    let byte = &mut [0][..];
    let pipes = [rustix::pipe::pipe().unwrap(), rustix::pipe::pipe().unwrap()];
    let sockets = UnixStream::pair().unwrap();
    let (turn, changed) = (Mutex::new(0_usize), Condvar::new());
    let take = |me: usize| {
        let mut turn = turn.lock().unwrap();
        while *turn % 2 != me {
            turn = changed.wait(turn).unwrap();
        }
        *turn += 1;
        changed.notify_one();
    };
    let counted = |name: &str, work: &mut dyn FnMut()| {
        let before = slept();
        work();
        println!("\nslept {name} {}", slept() - before);
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let byte = &mut [0][..];
            for _ in 0..TURNS {
                read(&pipes[0].0, &mut *byte).unwrap();
                write(&pipes[1].1, byte).unwrap();
            }
            for _ in 0..TURNS {
                rustix::net::recv(&sockets.1, &mut *byte, rustix::net::RecvFlags::empty()).unwrap();
                rustix::net::send(&sockets.1, byte, rustix::net::SendFlags::empty()).unwrap();
            }
            (0..TURNS).for_each(|_| take(1));
        });
        counted("pipe", &mut || {
            for _ in 0..TURNS {
                write(&pipes[0].1, byte).unwrap();
                read(&pipes[1].0, &mut *byte).unwrap();
            }
        });
        counted("socket", &mut || {
            for _ in 0..TURNS {
                rustix::net::send(&sockets.0, byte, rustix::net::SendFlags::empty()).unwrap();
                rustix::net::recv(&sockets.0, &mut *byte, rustix::net::RecvFlags::empty()).unwrap();
            }
        });
        counted("futex", &mut || (0..TURNS).for_each(|_| take(0)));
        println!("\ntid {}", rustix::thread::gettid().as_raw_nonzero());
        println!("\nschedstat {}", fs::read_to_string("/proc/thread-self/schedstat").unwrap());
    });
}

#[test]
fn waits_for_others_are_the_kernels_count_of_sleeps() {
    tracewing_testing::agrees_with_the_kernels(compare_with_the_kernels_account);
}

/// Whether waits and times are the kernel's, in a run of [`turns`].
fn compare_with_the_kernels_account() -> Result<(), String> {
    if !traceable() || !idle::is_reported() {
        return Ok(());
    }
    let before = tracewing_testing::stolen();
    let folder = tempfile::tempdir().unwrap();
    let mut arguments = player("turns");
    arguments.push("--nocapture".to_owned());
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let Some(printed) = recorded(play(&mut record(folder.path(), &[], &arguments), "turns")) else {
        return Ok(());
    };
    let stolen = (tracewing_testing::stolen() - before).as_nanos() as u64;
    let said = |start: &str| {
        let line =
            printed.lines().find_map(|line| line.strip_prefix(start)).unwrap_or_else(|| panic!("{printed}"));
        line.split(' ').next().unwrap().parse::<u64>().unwrap()
    };
    let rows = rows(folder.path(), &["--tid", &said("tid ").to_string()]);
    let inside: Vec<_> =
        rows.iter().filter(|row| row["section"] == "inside" && row["running_ns"].is_u64()).collect();
    let mut waits: BTreeMap<&str, u64> = BTreeMap::new();
    for row in &inside {
        if let Some(over) = row["ipc_via"][0]["on"].as_str() {
            *waits.entry(over).or_default() += ns(row, "ipc_waits");
        }
    }
    for over in ["pipe", "socket", "futex"] {
        let (found, slept) = (waits.get(over).copied().unwrap_or(0), said(&format!("slept {over} ")));
        eprintln!("{over}: {found} waits, slept {slept} times");
        // The last wait may be for the other's end, and a wake may come before the thread sleeps.
        if slept <= TURNS as u64 / 4 || found.abs_diff(slept) > slept / 50 + 2 {
            return Err(format!("{over}: {found} waits, slept {slept} times: {rows:?}"));
        }
    }
    let of = |name: &str| {
        inside.iter().find(|row| row["activity"] == name).unwrap_or_else(|| panic!("no row {name}"))
    };
    let turns = TURNS as u64;
    assert!(ns(of("read"), "calls") >= turns && ns(of("write"), "calls") >= turns);
    assert_eq!((ns(of("recvfrom"), "calls"), ns(of("sendto"), "calls")), (turns, turns));
    let running: u64 = inside.iter().map(|row| ns(row, "running_ns") + ns(row, "interrupted_ns")).sum();
    let kernels = said("schedstat ");
    eprintln!("on CPUs for {running} ns, schedstat {kernels} ns");
    // It ends somewhat later; and each of its switches is some hundred nanoseconds earlier in the kernel's
    // account.
    let apart = kernels / 20 + 5_000_000;
    if !(kernels.saturating_sub(apart)..=kernels + stolen + apart).contains(&running) {
        return Err(format!("{running} ns running, the kernel says {kernels}"));
    }
    Ok(())
}

#[test]
fn servers_are_shown_with_their_clients_despite_a_filter() {
    if !traceable() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let work = "dd if=/dev/zero bs=64k count=500 2>/dev/null | md5sum";
    let Some(_) = recorded(&mut record(folder.path(), &["--system-wide"], &["sh", "-c", work])) else {
        return;
    };
    let outside = |filter: &[&str]| -> Vec<Value> {
        let wanted = |row: &Value| row["name"] == "dd" && row["section"] == "outside";
        rows(folder.path(), filter).into_iter().filter(wanted).collect()
    };
    let whole = outside(&[]);
    assert_eq!(whole, outside(&["--process", "dd"]));
    let served = whole.iter().find(|row| row["activity"].as_str().unwrap().ends_with("(md5sum)"));
    let served = served.unwrap_or_else(|| panic!("{whole:?}"));
    let reader = rows(folder.path(), &["--process", "md5sum"]);
    let inside = reader.iter().filter(|row| row["section"] == "inside" && row["running_ns"].is_u64());
    let own: u64 = inside.map(|row| ns(row, "running_ns")).sum();
    assert!(ns(served, "calls") > 0 && ns(served, "running_ns") <= own, "{served}: {own} ns");
    let text = tracewing(folder.path()).args(["breakdown", "t", "--process", "dd"]).ran();
    let text = text.text();
    assert!(text.contains("outside, for it") && !text.contains("all CPUs"), "{text}");
}

#[test]
fn threads_begin_with_the_functions_that_their_program_records() {
    const SOURCE: &str = "#include <pthread.h>
        int inner(int i) { return i + 1; }
        void *worker(void *p) { for (int i = 0; i < 9; i = inner(i)); return p; }
        int main(void) {
            pthread_t t[3];
            for (int i = 0; i < 3; i++) pthread_create(&t[i], 0, worker, 0);
            for (int i = 0; i < 3; i++) pthread_join(t[i], 0);
            return inner(-1);
        }";
    if !installed(&["gcc"]) {
        return;
    }
    let optimised: &[&str] = if cfg!(debug_assertions) { &[] } else { &["--release"] };
    let arguments = [&["-p", "tracewing-preload"], optimised].concat();
    tracewing_testing::build(env!("CARGO_TARGET_TMPDIR"), &arguments);
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("begins.c"), folder.path().join("begins"));
    fs::write(&source, SOURCE).unwrap();
    let mut gcc = Command::new("gcc");
    gcc.args(["-g", "-finstrument-functions", "-pthread", "-o"]).args([&program, &source]);
    assert!(gcc.status().unwrap().success());
    let options = ["--functions", "--no-kernel"];
    let Some(_) = recorded(&mut record(folder.path(), &options, &[program.to_str().unwrap()])) else {
        return;
    };
    let rows = rows(folder.path(), &[]);
    let threads = rows.iter().filter(|row| row["section"] == "threads");
    let begun: BTreeMap<_, _> =
        threads.map(|row| (row["activity"].as_str().unwrap(), ns(row, "calls"))).collect();
    assert_eq!(begun, BTreeMap::from([("main", 1), ("worker", 3)]), "{rows:?}");
}

/// Interrupts of which not all kinds are recorded take time that is another row's: `threads` says the same.
#[test]
fn where_a_kind_of_interrupt_is_not_recorded_their_time_is_unknown() {
    let folder = tempfile::tempdir().unwrap();
    if !traceable() {
        return;
    }
    let vector = ["-k", "irq_vectors:local_timer*"];
    for more in [&[][..], &vector] {
        let options = [&["--system-wide", "-k", "irq:*", "-k", "sched:sched_switch"], more].concat();
        recorded(&mut record(folder.path(), &options, &["sleep", "0.1"]));
        let rows = rows(folder.path(), &[]);
        let machine = rows.iter().filter(|row| row["section"] == "machine");
        let times: BTreeMap<_, _> =
            machine.map(|row| (row["activity"].as_str().unwrap(), &row["running_ns"])).collect();
        assert!(times["interrupts"].is_null() && times["unknown"].is_u64(), "{more:?}: {times:?}");
        assert!(rows.iter().all(|row| row["interrupted_ns"].is_null()), "{more:?}: {rows:?}");
        for command in ["breakdown", "threads"] {
            let output = tracewing(folder.path()).args([command, "t"]).output().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            assert!(text.contains("The recording lacks some interrupts"), "{more:?}, {command}: {text}");
        }
        fs::remove_dir_all(folder.path().join("t")).unwrap();
    }
}
