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

/// Defines functions that sites call. They pass their return address, which is an address in the code of the
/// site, to another function as its last argument, which is in this register.
macro_rules! sites {
    ($(
        $(#[$doc:meta])*
        $name:ident($($argument:ident: $type:ty),*) = $function:path, $register:literal;
    )*) => {$(
        // SAFETY (of the attribute): leaves the stack and all arguments as they are.
        $(#[$doc])*
        #[cfg(target_arch = "x86_64")]
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        unsafe extern "C" fn $name($($argument: $type),*) {
            core::arch::naked_asm!(
                concat!("mov ", $register, ", [rsp]"),
                "jmp {function}",
                function = sym $function,
            )
        }

        $(#[$doc])*
        #[cfg(not(target_arch = "x86_64"))]
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($argument: $type),*) {
            // SAFETY: the caller's.
            unsafe { $function($($argument,)* 0) }
        }
    )*};
}

sites! {
    /// Records an event whose payload is one piece of 8 bytes.
    ///
    /// # Safety
    /// As for [`of_length`].
    tracewing_record_8_2(class: &'static EventClass, payload: *const u8) = of_length::<8>, "rdx";
    /// The same of 16 bytes.
    ///
    /// # Safety
    /// As for [`of_length`].
    tracewing_record_16_2(class: &'static EventClass, payload: *const u8) = of_length::<16>, "rdx";
    /// The same of 24 bytes.
    ///
    /// # Safety
    /// As for [`of_length`].
    tracewing_record_24_2(class: &'static EventClass, payload: *const u8) = of_length::<24>, "rdx";
    /// The same of 32 bytes.
    ///
    /// # Safety
    /// As for [`of_length`].
    tracewing_record_32_2(class: &'static EventClass, payload: *const u8) = of_length::<32>, "rdx";
    /// Records an event whose payload is one piece.
    ///
    /// # Safety
    /// `payload` points to `length` readable bytes.
    tracewing_record_2(class: &'static EventClass, payload: *const u8, length: usize) = record, "rcx";
    /// Records an event whose payload consists of several pieces.
    ///
    /// # Safety
    /// `segments` points to `count` segments, each of which is readable and stays unchanged meanwhile.
    tracewing_gather_2(class: &'static EventClass, segments: *const Segment, count: usize) = gather, "rcx";
}

/// # Safety
/// `payload` points to `LENGTH` readable bytes.
unsafe extern "C" fn of_length<const LENGTH: usize>(
    class: &'static EventClass,
    payload: *const u8,
    site: usize,
) {
    // SAFETY: the caller's.
    dynamic::record_bytes(class, unsafe { &*payload.cast::<[u8; LENGTH]>() }, site);
}

/// # Safety
/// `payload` points to `length` readable bytes.
unsafe extern "C" fn record(class: &'static EventClass, payload: *const u8, length: usize, site: usize) {
    // SAFETY: the caller's.
    dynamic::record_bytes(class, unsafe { std::slice::from_raw_parts(payload, length) }, site);
}

/// # Safety
/// `segments` points to `count` segments, each of which is readable and stays unchanged meanwhile.
unsafe extern "C" fn gather(class: &'static EventClass, segments: *const Segment, count: usize, site: usize) {
    // SAFETY: the caller's.
    unsafe { dynamic::record::<false>(class, std::slice::from_raw_parts(segments, count), site) };
}
