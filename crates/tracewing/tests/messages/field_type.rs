//! A type that no field can have.

use std::collections::HashMap;
use tracewing::Event;

#[derive(Event)]
struct Map {
    id: u32,
    map: HashMap<u32, u32>, //~ `HashMap<u32, u32>` cannot be a field of an event
}

fn main() {}
