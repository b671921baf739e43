//! A shared library with a copy of tracewing of its own, to be loaded and unloaded by programs that may have
//! none.

mod counts;

use core::ffi::c_int;
use std::sync::OnceLock;

use counts::Counts;
use tracewing::{Event, emit};

#[derive(Event)]
#[event(provider = "plugin")]
struct Step {
    place: u32,
    sequence: u64,
}

static COUNTS: OnceLock<Counts> = OnceLock::new();

/// Called once after loading, since reading the environment is nothing for a signal handler.
#[unsafe(no_mangle)]
pub extern "C" fn plugin_begin() {
    COUNTS.get_or_init(Counts::get);
}

/// Emits events at a place.
#[unsafe(no_mangle)]
pub extern "C" fn plugin_emit(place: u32, count: u32) {
    let counts = COUNTS.get().expect("the program called plugin_begin");
    for _ in 0..count {
        counts.around(place, |sequence| emit!(Step { place, sequence }));
    }
}

/// Emits at place 32.
#[unsafe(no_mangle)]
pub extern "C" fn plugin_handler(_: c_int) {
    plugin_emit(32, 1);
}

/// Prints the counts.
#[unsafe(no_mangle)]
pub extern "C" fn plugin_print() {
    COUNTS.get().expect("the program called plugin_begin").print();
}
