use tracewing::EventField;

#[derive(EventField)]
enum Large {
    A = 1 << 40,
}

fn main() {}
