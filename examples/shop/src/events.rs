//! The events of the shop. A doc comment becomes the event's description in the recording.

use tracewing::{Event, EventField};

/// A client has connected.
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

/// A worker took an order from the queue. Ordered: it is never stamped before the order entered.
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

/// What became of an order.
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
    /// From the queue's entry to the answer.
    #[event(unit = "ns")]
    pub latency: u64,
}

/// There was not enough of an item.
#[derive(Event)]
#[event(level = "error")]
pub struct SoldOut {
    pub item: u32,
    pub wanted: u32,
    pub left: u32,
}

/// A line was no order.
#[derive(Event)]
#[event(level = "error")]
pub struct Refused<'a> {
    pub connection: u64,
    pub line: &'a str,
}

/// A client has got its answer.
#[derive(Event)]
pub struct Answered {
    pub client: u32,
    /// From sending to receiving.
    #[event(unit = "ns")]
    pub latency: u64,
}
