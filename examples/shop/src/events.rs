//! The events of the shop. A doc comment becomes the event's description in the recording.

use tracewing::{Event, EventField};

/// A client connected.
#[derive(Event)]
pub struct Accepted {
    pub connection: u64,
    pub port: u16,
}

/// An order entered the queue.
#[derive(Event)]
#[event(print = "order {order} of {customer}: {quantity} x item {item}, {depth} in the queue")]
pub struct Enqueued<'a> {
    pub order: u64,
    pub item: u32,
    pub quantity: u32,
    pub depth: usize,
    pub customer: &'a str,
}

/// A worker took an order from the queue. Ordered: its stamp is never before that of the enqueuing.
#[derive(Event)]
#[event(ordered)]
pub struct Dequeued {
    pub order: u64,
    pub depth: usize,
}

/// A worker holds the inventory's lock.
#[derive(Event)]
#[event(ordered, level = "debug")]
pub struct InventoryLocked {
    pub order: u64,
}

/// The outcome of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EventField)]
#[repr(u8)]
pub enum Outcome {
    Sold,
    #[event(name = "sold out")]
    SoldOut,
}

/// An order was answered.
#[derive(Event)]
#[event(print = "order {order}: {outcome} after {latency} ns")]
pub struct Served {
    pub order: u64,
    pub outcome: Outcome,
    /// From enqueuing to the answer.
    #[event(unit = "ns")]
    pub latency: u64,
}

/// The stock of an item did not suffice.
#[derive(Event)]
#[event(level = "error")]
pub struct SoldOut {
    pub item: u32,
    pub requested: u32,
    pub left: u32,
}

/// A line was not a valid order.
#[derive(Event)]
#[event(level = "error")]
pub struct Refused<'a> {
    pub connection: u64,
    pub line: &'a str,
}

/// A client received its answer.
#[derive(Event)]
pub struct Answered {
    pub client: u32,
    /// From sending to receiving.
    #[event(unit = "ns")]
    pub latency: u64,
}
