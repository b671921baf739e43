//! The worker of `bench trigger` obeys every order; nothing here looks at a time.
#![cfg(not(loom))]

use std::io::Write;
use std::process::{Command, Stdio};

/// What the worker answers to some orders, and whether it ended well.
fn answers(orders: &[&str]) -> (Vec<Vec<u64>>, bool) {
    let mut worker = Command::new(env!("CARGO_BIN_EXE_bench-trigger"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the worker starts");
    let orders = orders.join("\n") + "\n";
    worker.stdin.take().expect("a pipe").write_all(orders.as_bytes()).expect("it reads its orders");
    let output = worker.wait_with_output().expect("it ends");
    let text = String::from_utf8(output.stdout).expect("text");
    let numbers = |line: &str| line.split(' ').map(|word| word.parse().expect("a number")).collect();
    (text.lines().map(numbers).collect(), output.status.success())
}

#[test]
fn every_form_is_known() {
    let forms = ["empty", "site", "nop", "jump", "load", "emit", "on", "callback"];
    let orders = forms.map(|form| format!("{form} 1600"));
    let (answers, well) = answers(&orders.each_ref().map(String::as_str));
    assert!(well && answers.len() == forms.len(), "{answers:?}");
}

#[test]
fn every_shape_does_the_same_with_a_site_and_without() {
    // The worker itself compares what they return.
    let shapes = ["straight", "calls", "tight", "memory", "vectors"];
    let orders = shapes.map(|shape| format!("shape 10 {shape} 4080"));
    let (answers, well) = answers(&orders.each_ref().map(String::as_str));
    assert!(well && answers.len() == shapes.len() && answers.iter().all(|answer| answer.len() == 3));
}

#[test]
fn ten_thousand_sites_are_switched() {
    // The worker itself walks through them.
    let (answers, well) = answers(&["flip 10000", "flip 3"]);
    assert!(well && answers.len() == 2 && answers.iter().all(|answer| answer.len() == 2));
}

#[test]
fn what_is_no_order_ends_it() {
    for order in ["nonsense 1", "shape 10 straight 17", "flip 10001"] {
        let (answers, well) = answers(&[order]);
        assert!(answers.is_empty() && !well, "{order}");
    }
}
