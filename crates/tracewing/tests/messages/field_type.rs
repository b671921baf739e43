use std::collections::HashMap;
use tracewing::Event;

#[derive(Event)]
struct Map {
    id: u32,
    map: HashMap<u32, u32>,
}

fn main() {}
