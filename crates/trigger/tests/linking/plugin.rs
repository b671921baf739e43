//! A library to be loaded by `dlopen`.

use library::tracewing_trigger::{objects, switch};
use library::{from_library, site};

/// Whether the plug-in's own site is on.
#[unsafe(no_mangle)]
pub extern "C" fn hit() -> bool {
    site!("plugin")
}

/// Whether the library's site, as the plug-in links it, is on.
#[unsafe(no_mangle)]
pub extern "C" fn hit_library() -> bool {
    from_library()
}

/// Switches the sites that this library's copy of the crate knows.
#[unsafe(no_mangle)]
pub extern "C" fn switch_own(on: bool) -> usize {
    let objects = objects();
    let all: Vec<_> = objects.sites().map(|record| (record, on)).collect();
    switch(&all).unwrap().changed
}
