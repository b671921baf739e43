use tracewing::Event;

#[derive(Event)]
#[event(print = "{id} of {name}")]
struct NoSuchField {
    id: u32,
}

#[derive(Event)]
#[event(print = "{id} of {name}")]
struct SkippedField {
    id: u32,
    #[event(skip)]
    name: String,
}

#[derive(Event)]
#[event(print = "{id")]
struct Open {
    id: u32,
}

#[derive(Event)]
#[event(print = "id}")]
struct Close {
    id: u32,
}

#[derive(Event)]
#[event(print = "{id:?}")]
struct Format {
    id: u32,
}

#[derive(Event)]
#[event(print = "{}")]
struct Positional {
    id: u32,
}

fn main() {}
