//! Mistakes in the attributes and names of fields.

use tracewing::Event;

#[derive(Event)]
struct Unknown {
    #[event(hexadecimal)] //~ expected `hex`, `octal`, `binary`, `unit`, `name` or `skip`
    value: u32,
}

#[derive(Event)]
struct Reserved {
    #[event(unit = "char")] //~ reserved
    value: u32,
}

#[derive(Event)]
struct Same {
    a: u32,
    #[event(name = "a")] //~ two fields have the name `a`
    b: u32,
}

#[derive(Event)]
struct NoIdentifier {
    #[event(name = "1st")] //~ cannot name a field
    first: u32,
}

#[derive(Event)]
struct NotAscii {
    größe: u32, //~ cannot name a field
}

#[derive(Event)]
struct Skipped {
    #[event(skip, hex)] //~ takes no other attributes
    value: u32,
}

fn main() {}
