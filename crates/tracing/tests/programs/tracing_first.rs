//! Emits the first events of 40 call sites, 20 spans and a log record from one thread, and exits at once.
//! Another thread prints one line: the emitting thread's id, then the nanoseconds that each first event took.

use std::time::Instant;
use tracing::{info, info_span};
use tracing_subscriber::prelude::*;

/// Applies a macro to ten names, one call site each, timed.
macro_rules! ten {
    ($took:ident, $of:ident) => {
        ten!(@ $took, $of; "0" "1" "2" "3" "4" "5" "6" "7" "8" "9")
    };
    (@ $took:ident, $of:ident; $($number:literal)*) => {
        $({
            let number = $took.len() as u64;
            let begin = Instant::now();
            $of!($number, number);
            $took.push(begin.elapsed().as_nanos());
        })*
    };
}

macro_rules! said {
    ($name:literal, $number:ident) => {
        info!(name: concat!("said", $name), $number, "a number and text")
    };
}

macro_rules! counted {
    ($name:literal, $number:ident) => {
        info!(name: concat!("counted", $name), $number)
    };
}

macro_rules! checked {
    ($name:literal, $number:ident) => {
        info!(name: concat!("checked", $name), $number, is_odd = $number % 2 == 1)
    };
}

macro_rules! disabled {
    ($name:literal, $number:ident) => {
        info!(name: concat!("disabled", $name), target: "disabled", $number)
    };
}

macro_rules! span {
    ($name:literal, $number:ident) => {
        drop(info_span!(concat!("span", $name), $number).entered())
    };
}

macro_rules! text_span {
    ($name:literal, $number:ident) => {
        drop(info_span!(concat!("text", $name), $number, text = "x").entered())
    };
}

fn main() {
    tracing_subscriber::registry().with(tracewing_tracing::layer()).init();
    let emit = || {
        let mut took = Vec::with_capacity(100);
        ten!(took, said);
        ten!(took, counted);
        ten!(took, checked);
        ten!(took, disabled);
        ten!(took, span);
        ten!(took, text_span);
        let begin = Instant::now();
        log::info!("logged");
        took.push(begin.elapsed().as_nanos());
        // SAFETY: takes nothing and cannot fail.
        (unsafe { gettid() }, took)
    };
    let (tid, took) =
        std::thread::Builder::new().name("emitter".to_owned()).spawn(emit).unwrap().join().unwrap();
    println!("{tid} {}", took.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "));
}

unsafe extern "C" {
    fn gettid() -> i32;
}
