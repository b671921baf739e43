use tracewing::Event;

#[derive(Event)]
struct Unknown {
    #[event(hexadecimal)]
    value: u32,
}

#[derive(Event)]
struct Reserved {
    #[event(unit = "char")]
    value: u32,
}

#[derive(Event)]
struct Same {
    a: u32,
    #[event(name = "a")]
    b: u32,
}

#[derive(Event)]
struct NoIdentifier {
    #[event(name = "1st")]
    first: u32,
}

#[derive(Event)]
struct NotAscii {
    größe: u32,
}

#[derive(Event)]
struct Skipped {
    #[event(skip, hex)]
    value: u32,
}

fn main() {}
