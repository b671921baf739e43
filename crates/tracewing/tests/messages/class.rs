use tracewing::Event;

#[derive(Event)]
struct Generic<T> {
    value: T,
}

#[derive(Event)]
struct Sized<const N: usize> {
    value: [u8; N],
}

#[derive(Event)]
struct Tuple(u32, u64);

#[derive(Event)]
enum Enum {
    A,
}

#[derive(Event)]
#[event(level = "warning")]
struct Level;

#[derive(Event)]
#[event(name = "with space")]
struct Name;

#[derive(Event)]
#[event(provider = "a:b")]
struct Provider;

#[derive(Event)]
#[event(name = "")]
struct Empty;

#[derive(Event)]
#[event(colour = "red")]
struct Unknown;

#[derive(Event)]
#[event(ordered, ordered)]
struct Twice;

fn main() {}
