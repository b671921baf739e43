use tracewing::EventField;

#[derive(EventField)]
struct Struct {
    a: u32,
}

#[derive(EventField)]
enum WithFields {
    A,
    B(u32),
}

#[derive(EventField)]
enum Nothing {}

#[derive(EventField)]
#[repr(u128)]
enum TooWide {
    A,
}

#[derive(EventField)]
enum SameLabel {
    A,
    #[event(name = "A")]
    B,
}

#[derive(EventField)]
enum Generic<T> {
    A(T),
}

fn main() {}
