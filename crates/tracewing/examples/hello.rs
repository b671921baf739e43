//! The smallest instrumented program: `tracewing record -- target/release/examples/hello`, then
//! `tracewing list`.

use tracewing::{Event, emit, event};

/// An order was put into the queue.
#[derive(Event)]
#[event(provider = "hello", print = "order {id} of {customer}, {depth} waiting")]
struct Enqueued<'a> {
    id: u64,
    depth: u32,
    customer: &'a str,
}

fn main() {
    for id in 0..10 {
        emit!(Enqueued { id, depth: 10 - id as u32, customer: "Ada" });
    }
    event!("hello:done", orders = 10u32);
}
