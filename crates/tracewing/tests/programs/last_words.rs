//! Emits numbered events from two threads, and then dies, or waits to be looked at.
//!
//! `last_words abort|wait COUNT`. Before it waits it prints its process id.

use std::io::Write;
use std::thread;
use std::time::Duration;

use tracewing::{Event, emit, event};

#[derive(Event)]
#[event(provider = "last")]
struct Words<'a> {
    number: u64,
    text: &'a str,
    numbers: &'a [u16],
    half: Option<u32>,
}

#[derive(Event)]
#[event(provider = "last")]
struct Number {
    number: u64,
}

fn emit_all(count: u64) {
    for number in 0..count {
        emit!(Number { number });
        if number % 4 == 0 {
            let half = (number % 8 == 0).then_some(number as u32 / 2);
            emit!(Words { number, text: "naïve \"text\"", numbers: &[number as u16, 7], half });
            event!("last:ad_hoc", number);
        }
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let end = arguments.next().expect("abort or wait");
    let count = arguments.next().and_then(|count| count.parse().ok()).expect("a count");
    thread::scope(|scope| {
        scope.spawn(|| emit_all(count));
        emit_all(count);
    });
    if end == "abort" {
        std::process::abort();
    }
    println!("{}", std::process::id());
    std::io::stdout().flush().expect("standard output");
    thread::sleep(Duration::from_secs(60));
}
