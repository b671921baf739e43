//! Mistakes in the struct and its attributes.

use tracewing::Event;

#[derive(Event)]
struct Generic<T> { //~ lifetime parameters only
    value: T,
}

#[derive(Event)]
struct Sized<const N: usize> { //~ lifetime parameters only
    value: [u8; N],
}

#[derive(Event)]
struct Tuple(u32, u64); //~ the fields of an event have names

#[derive(Event)]
enum Enum { //~ `Event` is derived for structs only
    A,
}

#[derive(Event)]
#[event(level = "warning")] //~ expected "error", "warn", "info", "debug" or "trace"
struct Level;

#[derive(Event)]
#[event(name = "with space")] //~ ' ' in a name
struct Name;

#[derive(Event)]
#[event(provider = "a:b")] //~ a provider has no `:` in its name
struct Provider;

#[derive(Event)]
#[event(name = "")] //~ at least one character
struct Empty;

#[derive(Event)]
#[event(colour = "red")] //~ expected `name`, `provider`, `level`, `major`, `print`, `ordered` or `crate`
struct Unknown;

#[derive(Event)]
#[event(ordered, ordered)] //~ said before
struct Twice;

fn main() {}
