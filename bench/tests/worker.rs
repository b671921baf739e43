//! The worker obeys every order that needs no recorder; nothing here looks at a time.
#![cfg(not(loom))]

use std::io::Write;
use std::process::{Command, Stdio};

/// What the worker answers to some orders, and whether it ended well.
fn answers(orders: &str) -> (Vec<String>, bool) {
    let mut worker = Command::new(env!("CARGO_BIN_EXE_bench"))
        .arg("worker")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the worker starts");
    worker.stdin.take().expect("a pipe").write_all(orders.as_bytes()).expect("it reads its orders");
    let output = worker.wait_with_output().expect("it ends");
    let text = String::from_utf8(output.stdout).expect("text");
    (text.lines().map(str::to_owned).collect(), output.status.success())
}

#[test]
fn every_variant_is_known() {
    let variants = [
        "rdtsc",
        "lfence-rdtsc",
        "local-cas",
        "locked-cas",
        "mutex",
        "two_u64",
        "ordered",
        "bytes16",
        "bytes64",
        "bytes256",
        "string",
        "buffer-mutex",
        "buffer-seqlock",
        "buffer-local-cas",
        "buffer-locked-cas",
        "buffer-k42",
    ];
    let orders: String = variants.iter().map(|variant| format!("{variant} 1000\n")).collect();
    let (answers, well) = answers(&orders);
    assert!(well);
    assert_eq!(answers.len(), variants.len());
    assert!(answers.iter().all(|answer| answer.parse::<u64>().is_ok()), "{answers:?}");
}

#[test]
fn threads_and_floods() {
    let (answers, well) = answers("threads 1000 3 buffer-k42\nthreads 1000 3 shared-mutex\nflood 1\n");
    assert!(well);
    let flood: Vec<u64> = answers[2].split(' ').map(|number| number.parse().expect("a number")).collect();
    assert!(flood[0] > 0 && flood[1] >= 1_000_000, "{answers:?}");
}

#[test]
fn nothing_makes_no_system_call_and_every_event_has_a_sample() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("samples");
    let (answers, well) = answers(&format!("empty 1000 {}\n", path.display()));
    if !well {
        tracewing_testing::skip(
            tracewing_testing::Cause::Kernel(5, 11),
            "this kernel does not catch system calls (Syscall User Dispatch, Linux 5.11)",
        );
        return;
    }
    let numbers: Vec<u64> = answers[0].split(' ').map(|number| number.parse().expect("a number")).collect();
    assert_eq!((numbers[1], numbers[3]), (0, 0), "system calls: {answers:?}");
    assert_eq!(std::fs::metadata(&path).expect("samples").len(), 4000);
}

#[test]
fn an_unknown_order_ends_it() {
    let (answers, well) = answers("nonsense 1\n");
    assert!(answers.is_empty() && !well);
}
