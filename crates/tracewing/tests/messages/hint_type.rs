//! Hints and formats that do not fit the type.

use tracewing::Event;

#[derive(Event)]
struct HexText<'a> {
    #[event(hex)] //~ are for integers
    text: &'a str,
}

#[derive(Event)]
#[event(print = "{id} took {share:x}")] //~ `share` is shown as x, X, o or b, which are for integers
struct HexReal {
    id: u32,
    share: f64,
}

#[derive(Event)]
#[event(print = "{id:.3}")] //~ `id` is shown with a precision
struct PreciseInteger {
    id: u32,
}

fn main() {}
