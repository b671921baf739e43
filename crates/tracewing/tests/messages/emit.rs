//! Mistakes at an `emit!`.

use tracewing::{Event, emit};

#[derive(Event)]
struct Job {
    id: u64,
}

fn main() {
    emit!(5); //~ is not an event
    emit!(Job { id: 5, depth: 6 }); //~ no field named `depth`
    emit!(Job { id: "five" }); //~ mismatched types
}
