//! Mistakes in print forms.

use tracewing::Event;

#[derive(Event)]
#[event(print = "{id} of {name}")] //~ the event records no field `name`
struct NoSuchField {
    id: u32,
}

#[derive(Event)]
#[event(print = "{id} of {name}")] //~ the event records no field `name`
struct SkippedField {
    id: u32,
    #[event(skip)]
    name: String,
}

#[derive(Event)]
#[event(print = "{id")] //~ `{` without `}`
struct Open {
    id: u32,
}

#[derive(Event)]
#[event(print = "id}")] //~ `}` without `{`
struct Close {
    id: u32,
}

#[derive(Event)]
#[event(print = "{id:?}")] //~ `?` is not a format that print forms know
struct Format {
    id: u32,
}

#[derive(Event)]
#[event(print = "{}")] //~ needs the name of a field
struct Positional {
    id: u32,
}

fn main() {}
