//! Emits large events, for recordings that are long in bytes but have few events. The argument is how many
//! MiB.

use std::thread::sleep;
use std::time::Duration;
use tracewing::{Event, emit};

/// Bytes of an event.
const SIZE: usize = 1 << 15;

#[derive(Event)]
#[event(provider = "bulk")]
struct Fill<'a> {
    number: u64,
    bytes: &'a [u8],
}

fn main() {
    let count: u64 = std::env::args().nth(1).and_then(|count| count.parse().ok()).expect("a number of MiB");
    let bytes = vec![7; SIZE];
    for number in 0..count << 5 {
        emit!(Fill { number, bytes: &bytes });
        // The recorder keeps up.
        if number % 32 == 31 {
            sleep(Duration::from_millis(8));
        }
    }
}
