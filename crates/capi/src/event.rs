//! Loading and unloading of objects with sites, and the functions that sites call.

use tracewing::dynamic::{self, EventClass, Segment};
use tracewing_trigger::Object;

/// Called when a program or library with sites has been loaded.
#[unsafe(no_mangle)]
extern "C" fn tracewing_load_2(object: &'static Object) {
    tracewing_trigger::register(object);
}

/// Called before the object is unloaded.
#[unsafe(no_mangle)]
extern "C" fn tracewing_unload_2(object: &Object) {
    tracewing_trigger::unregister(object);
}

macro_rules! record {
    ($($name:ident $length:literal)*) => {$(
        /// Records an event whose payload is one piece of this length, emitted at the address `site`.
        #[unsafe(no_mangle)]
        extern "C" fn $name(class: &'static EventClass, payload: &[u8; $length], site: usize) {
            dynamic::record_bytes(class, payload, site);
        }
    )*};
}

record! {
    tracewing_record_8_at_2 8
    tracewing_record_16_at_2 16
    tracewing_record_24_at_2 24
    tracewing_record_32_at_2 32
}

/// Records an event whose payload is one piece, emitted at the address `site`.
///
/// # Safety
/// `payload` points to `length` readable bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn tracewing_record_at_2(
    class: &'static EventClass,
    payload: *const u8,
    length: usize,
    site: usize,
) {
    // SAFETY: the caller's.
    dynamic::record_bytes(class, unsafe { std::slice::from_raw_parts(payload, length) }, site);
}

/// Records an event whose payload consists of several pieces, emitted at the address `site`.
///
/// # Safety
/// `segments` points to `count` segments, each of which is readable and stays unchanged meanwhile.
#[unsafe(no_mangle)]
unsafe extern "C" fn tracewing_gather_at_2(
    class: &'static EventClass,
    segments: *const Segment,
    count: usize,
    site: usize,
) {
    // SAFETY: the caller's.
    unsafe { dynamic::record::<false>(class, std::slice::from_raw_parts(segments, count), site) };
}
