//! Enums that are no field types.

use tracewing::EventField;

#[derive(EventField)]
struct Struct { //~ for enums without fields only
    a: u32,
}

#[derive(EventField)]
enum WithFields {
    A,
    B(u32), //~ variants with fields
}

#[derive(EventField)]
enum Nothing {} //~ without variants

#[derive(EventField)]
#[repr(u128)] //~ at most 64 bits
enum TooWide {
    A,
}

#[derive(EventField)]
enum SameLabel {
    A,
    #[event(name = "A")] //~ two variants have the label `A`
    B,
}

#[derive(EventField)]
enum Generic<T> { //~ needs no parameters
    A(T),
}

fn main() {}
