use tracewing::Event;

#[derive(Event)]
struct HexText<'a> {
    #[event(hex)]
    text: &'a str,
}

#[derive(Event)]
#[event(print = "{id} took {share:x}")]
struct HexReal {
    id: u32,
    share: f64,
}

#[derive(Event)]
#[event(print = "{id:.3}")]
struct PreciseInteger {
    id: u32,
}

fn main() {}
