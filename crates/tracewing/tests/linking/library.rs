//! A library with events, linked into the program and once more into its plug-in.

use tracewing::{Event, Field, emit, event};

#[derive(Event)]
struct FromLibrary {
    value: u32,
}

fn generic<T: Field>(count: &mut u32, value: T) {
    event!("library:generic", value, count = { *count += 1; *count });
}

/// Reaches each site once; returns how many evaluated their arguments.
pub fn emit_all() -> u32 {
    let mut count = 0;
    emit!(FromLibrary { value: { count += 1; count } });
    generic(&mut count, 1_u8);
    generic(&mut count, "text");
    count
}

/// The classes that this library's copy of tracewing finds: name, first field's shape and type, on or off.
pub fn classes() -> Vec<String> {
    let line = |class: &'static tracewing::EventClass| {
        let description = class.description();
        let first = description.fields.first().map_or("nothing".into(), |field| format!("{:?} {:?}", field.shape, field.scalar));
        format!("{} {first} {}", description.name, if class.is_on() { "on" } else { "off" })
    };
    let mut lines: Vec<String> = tracewing::__private::classes().into_iter().filter(is_declared_here).map(line).collect();
    lines.sort();
    lines.dedup();
    lines
}

/// Switches all classes of this copy on.
pub fn switch_on() {
    tracewing::__private::pretend(true);
}

/// Whether it is not one of the crate's own.
fn is_declared_here(class: &&'static tracewing::EventClass) -> bool {
    let name = class.description().name;
    !["tracewing:", "lock:"].iter().any(|own| name.starts_with(own))
}
