//! A program whose events can be compiled out.

use std::hint::black_box;

use tracewing::{Event, emit, event, span};

#[derive(Event)]
struct DeclaredInVain<'a> {
    number: u64,
    text: &'a str,
}

#[unsafe(no_mangle)]
#[inline(never)]
fn with_events(number: u64, text: &str) -> u64 {
    emit!(DeclaredInVain { number: number / 3, text });
    event!("compiled_out:in_vain", number, length = text.len(), copied = &*text.to_owned());
    let _span = span!("compiled_out:span_in_vain", number);
    number.rotate_left(3) ^ text.len() as u64
}

#[unsafe(no_mangle)]
#[inline(never)]
fn without_events(number: u64, text: &str) -> u64 {
    number.rotate_left(3) ^ text.len() as u64
}

fn main() {
    let (number, text) = (black_box(7), black_box("seven"));
    assert_eq!(with_events(number, text), without_events(number, text));
    tracewing::snapshot_on_panic();
    assert!(tracewing::snapshot().is_err());
}
