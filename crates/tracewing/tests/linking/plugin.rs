//! A shared library that has its own copies of tracewing and of the library with events.

use tracewing::{Event, emit, event};

#[derive(Event)]
struct FromPlugin {
    value: f64,
}

/// Reaches each site once; returns how many evaluated their arguments.
#[unsafe(no_mangle)]
pub extern "C" fn plugin_emit_all() -> u32 {
    let mut count = library::emit_all();
    emit!(FromPlugin { value: { count += 1; 1.5 } });
    event!("plugin:ad_hoc", value = { count += 1; 'c' });
    count
}

#[unsafe(no_mangle)]
pub extern "C" fn plugin_print_classes() {
    for line in library::classes() {
        println!("plugin {line}");
    }
}
