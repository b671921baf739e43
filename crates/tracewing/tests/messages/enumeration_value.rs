//! A value that needs a larger representation.

use tracewing::EventField;

#[derive(EventField)] //~ does not fit `i32`
enum Large {
    A = 1 << 40,
}

fn main() {}
