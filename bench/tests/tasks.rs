//! The worker of `bench tasks` obeys every order; nothing here looks at a time.
#![cfg(not(loom))]

use std::io::Write;
use std::process::{Command, Stdio};

/// What the worker answers to some orders, and whether it ended well.
fn answers(orders: &str) -> (Vec<u64>, bool) {
    let mut worker = Command::new(env!("CARGO_BIN_EXE_bench-tasks"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the worker starts");
    worker.stdin.take().expect("a pipe").write_all(orders.as_bytes()).expect("it reads its orders");
    let output = worker.wait_with_output().expect("it ends");
    let text = String::from_utf8(output.stdout).expect("text");
    (text.lines().map(|line| line.parse().expect("a number")).collect(), output.status.success())
}

#[test]
fn every_variant_is_known() {
    let (answers, well) = answers("plain 1\ntold 1\ntraced 1\nplain-two 1\ntold-two 1\ntraced-two 1\n");
    assert!(well && answers.len() == 6, "{answers:?}");
}

#[test]
fn what_is_no_order_is_refused() {
    for order in ["other 1\n", "plain\n", "plain many\n"] {
        assert_eq!(answers(order), (Vec::new(), false), "{order}");
    }
}
