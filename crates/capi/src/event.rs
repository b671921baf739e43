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
        /// Records an event whose payload is one piece of this length.
        #[unsafe(no_mangle)]
        extern "C" fn $name(class: &'static EventClass, payload: &[u8; $length]) {
            dynamic::record_bytes(class, payload);
        }
    )*};
}

record! {
    tracewing_record_8_2 8
    tracewing_record_16_2 16
    tracewing_record_24_2 24
    tracewing_record_32_2 32
}

/// Records an event whose payload is one piece.
///
/// # Safety
/// `payload` points to `length` readable bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn tracewing_record_2(class: &'static EventClass, payload: *const u8, length: usize) {
    // SAFETY: the caller's.
    dynamic::record_bytes(class, unsafe { std::slice::from_raw_parts(payload, length) });
}

/// Records an event whose payload consists of several pieces.
///
/// # Safety
/// `segments` points to `count` segments, each of which is readable and stays unchanged meanwhile.
#[unsafe(no_mangle)]
unsafe extern "C" fn tracewing_gather_2(class: &'static EventClass, segments: *const Segment, count: usize) {
    // SAFETY: the caller's.
    unsafe { dynamic::record::<false>(class, std::slice::from_raw_parts(segments, count)) };
}
