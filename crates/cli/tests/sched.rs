//! `tracewing sched` and `tracewing threads` compared with other accounts of the same run: perf's, and the
//! kernel's own. Needs root.

#[path = "kernel_common/mod.rs"]
mod common;
mod harness;
mod idle;

use common::{play, player, record, role_is, tracewing};
use harness::{Json, Printed, RunExt, traceable};
use rustix::time::{ClockId, clock_gettime};
use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Barrier;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tracewing_testing::installed;
use tracewing_trace::Zone;
use tracewing_units::Timestamp;

/// How far the clocks' readings of one switch may be apart: both tools read them in the same tracepoint, one
/// after the other, and the other one's handler lies in between; the machine may take the CPU from under
/// both.
const SWITCH_MS: f64 = 0.05;

/// A slice's state and its wait, delay and run in ms, where known.
type Row = (String, [Option<f64>; 3]);

fn perf_rows(text: &str, tid: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    for line in text.lines() {
        // 1737.386272 [0001]  sh[30645]    3.717      3.582      1.687      D
        let Some((head, rest)) = line.split_once(&format!("[{tid}]")) else { continue };
        let words: Vec<_> = rest.split_whitespace().collect();
        if let ([wait, delay, run, state], true) = (&words[..], head.contains(" [0")) {
            let ms = [wait, delay, run].map(|word| word.parse().ok());
            rows.push((state.to_string(), ms));
        }
    }
    rows
}

fn our_rows(folder: &Path, tid: &str) -> Vec<Row> {
    let output = tracewing(folder).args(["sched", "timehist", "--format", "json", "--tid", tid, "t"]).ran();
    let text = output.text();
    let row = |line: &str| -> Row {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        let ms = |name: &str| row[name].as_f64().map(|ns| ns / 1e6);
        let state = row["state"].as_str().unwrap().trim_end_matches('+').to_owned();
        (state, [ms("wait_ns"), ms("delay_ns"), ms("run_ns")])
    };
    text.lines().map(row).collect()
}

#[test]
fn slices_are_those_of_perf() {
    if !traceable() || !installed(&["perf"]) {
        return;
    }
    tracewing_testing::agrees_with_the_kernels(compare_with_perf);
}

/// Whether a shell's slices are those of perf: the host may take the CPU between two readings of the clock.
fn compare_with_perf() -> Result<(), String> {
    let folder = tempfile::tempdir().unwrap();
    let work = "echo $$; for i in 1 2 3 4 5 6 7 8; do sleep 0.003; ls / > ls; done; exec true";
    let command = ["perf", "sched", "record", "-o", "perf.data", "--", "sh", "-c", work];
    let output = record(folder.path(), &[], &command).succeeds();
    let tid = output.text().lines().next().unwrap().to_owned();

    let arguments = ["sched", "timehist", "--state", "-i", "perf.data"];
    let theirs = Command::new("perf").args(arguments).current_dir(folder.path()).ran();
    let theirs = perf_rows(&theirs.text(), &tid);
    let ours = our_rows(folder.path(), &tid);
    assert!(theirs.len() > 8 && ours.len() > 8, "{theirs:?}\n{ours:?}");

    // perf begins later, and writes 0 where it does not know; both end with the shell.
    let mut compared = [0; 3];
    for (theirs, ours) in theirs[1..].iter().rev().zip(ours.iter().rev()) {
        // perf names some states of newer kernels otherwise.
        assert!(theirs.0 == ours.0 || theirs.0 == "W" || theirs.0 == "X", "{theirs:?} {ours:?}");
        for (place, compared) in compared.iter_mut().enumerate() {
            if let (Some(theirs), Some(ours)) = (theirs.1[place], ours.1[place])
                && theirs > 0.0
            {
                if (theirs - ours).abs() > SWITCH_MS + theirs / 100.0 {
                    return Err(format!("{theirs} {ours} in column {place}"));
                }
                *compared += 1;
            }
        }
    }
    assert!(compared.iter().all(|compared| *compared > 4), "{compared:?} values compared");
    Ok(())
}

/// Not a test: works in threads that each have their own way, and prints at its end what the kernel says of
/// them.
#[test]
fn workload() {
    if !role_is("workload") {
        return;
    }
    let used = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    };
    let compute = |time: Duration| {
        let end = used() + time;
        while used() < end {
            std::hint::black_box(std::array::from_fn::<u64, 64, _>(|at| at as u64).iter().sum::<u64>());
        }
    };
    let done = Barrier::new(5);
    std::thread::scope(|scope| {
        // They share the CPUs, so each is preempted; two sleep in between.
        for sleep in [0, 0, 1, 5] {
            let done = &done;
            scope.spawn(move || {
                for _ in 0..40 {
                    compute(Duration::from_millis(4));
                    std::thread::sleep(Duration::from_millis(sleep));
                }
                done.wait();
                done.wait();
            });
        }
        done.wait();
        // They sleep by now, so that the kernel's sums are complete: those of a running thread lag by up to a
        // tick.
        std::thread::sleep(Duration::from_millis(20));
        println!("read {}", SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos());
        for task in fs::read_dir("/proc/self/task").unwrap().flatten() {
            let account = fs::read_to_string(task.path().join("schedstat")).unwrap();
            println!("schedstat {} {account}", task.file_name().to_str().unwrap());
        }
        done.wait();
    });
}

#[test]
fn active_time_is_the_kernels() {
    if !traceable() || !idle::is_reported() {
        return;
    }
    tracewing_testing::agrees_with_the_kernels(compare_with_the_kernels_account);
}

/// Whether times are the kernel's, for each thread of a run.
fn compare_with_the_kernels_account() -> Result<(), String> {
    let before = tracewing_testing::stolen();
    let folder = tempfile::tempdir().unwrap();
    let mut arguments = player("workload");
    arguments.push("--nocapture".to_owned());
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let output = play(&mut record(folder.path(), &["-e", "sched_*"], &arguments), "workload").succeeds();
    let stolen = (tracewing_testing::stolen() - before).as_nanos() as f64;
    let printed = output.text();
    let accounts: HashMap<i64, [f64; 3]> = printed
        .lines()
        .filter_map(|line| {
            let (_, account) = line.split_once("schedstat ")?;
            let numbers: Vec<f64> = account.split(' ').map(|number| number.parse().unwrap()).collect();
            Some((numbers[0] as i64, [numbers[1], numbers[2], numbers[3]]))
        })
        .collect();
    assert!(accounts.len() >= 5, "{printed}");

    // What they wait for when the program has read their accounts is no part of these.
    let read = printed.lines().find_map(|line| line.split_once("read ")?.1.parse().ok()).expect("a time");
    let to = Zone::Utc.format(Timestamp::from_ns(read));
    let threads =
        tracewing(folder.path()).args(["threads", "--format", "json", "--clock-gmt", "--to", &to, "t"]).ran();
    let threads: serde_json::Value = threads.json();
    let mut compared = 0;
    for thread in threads["threads"].as_array().unwrap() {
        let figure = |name: &str| thread[name].as_f64().unwrap();
        let Some([ran, waited, slices]) = accounts.get(&thread["tid"].as_i64().unwrap()) else { continue };
        // Only those that worked: the others are still at it.
        if *ran < 60e6 {
            continue;
        }
        let [running, waiting, unknown] = ["running_ns", "ready_ns", "unknown_ns"].map(figure);
        eprintln!(
            "running {:.3} ms, schedstat {:.3} ms ({:+.3} %); waiting {:.3} ms, schedstat {:.3} ms ({:+.3} %); unknown \
             {:.3} ms; {slices} slices",
            running / 1e6,
            ran / 1e6,
            (running / ran - 1.0) * 100.0,
            waiting / 1e6,
            waited / 1e6,
            (waiting / waited - 1.0) * 100.0,
            unknown / 1e6,
        );
        // The kernel reads its clock when it begins to switch, and the tracepoint comes a little later, each
        // time.
        let agrees = |ours: f64, theirs: f64, stolen: f64| {
            let apart = theirs / 100.0 + slices * 2000.0;
            ours <= theirs + stolen + apart && theirs <= ours + unknown + apart
        };
        if !agrees(running, *ran, stolen) || !agrees(waiting, *waited, 0.0) {
            return Err(format!("{thread}: the kernel says {ran} ns running, {waited} ns waiting"));
        }
        compared += 1;
    }
    assert_eq!(compared, 4, "{threads}");
    Ok(())
}

#[test]
fn without_switches_no_time_is_known() {
    if !traceable() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let status = record(folder.path(), &["-k", "syscall*"], &["sleep", "0.2"]).status().unwrap();
    assert!(status.success());
    let threads = tracewing(folder.path()).args(["threads", "--format", "json", "t"]).ran();
    let threads: serde_json::Value = threads.json();
    let thread = &threads["threads"][0];
    assert!(thread["system_calls"].as_u64().unwrap() > 0, "{threads}");
    for figure in ["running_ns", "ready_ns", "blocked_ns"] {
        assert!(thread[figure].is_null(), "{figure}: {threads}");
    }
    assert!(thread["unknown_ns"].as_u64().unwrap() >= 200_000_000, "{threads}");
}
