//! Event classes that are made while the program runs: for bridges from other instrumentation, whose events have no
//! declaration that the compiler knows. They have no site; who emits asks [`EventClass::is_on`] first.

use tracewing_abi::message::{ClassesWriter, MAX_MESSAGE};
use tracewing_abi::schema::Class;

use crate::agent;
pub use crate::agent::{changes, is_recorded, on_change};
pub use crate::class::EventClass;
pub use crate::path::Segment;
pub use tracewing_ring::opened;

/// What a thread is in: for bridges whose spans have no guard.
pub mod span {
    pub use crate::span::{enter, innermost, leave, next_id};
}

/// The functions that make children on their parent's memory, which this crate notices: for libraries that stand in front of
/// the C library.
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
pub mod children {
    pub use crate::agent::vfork::{noticed_clone as clone, noticed_vfork as vfork};
}

#[repr(C)]
struct Dynamic {
    class: EventClass,
    description: Class<'static>,
}

extern "C" fn describe(class: &'static EventClass) -> &'static Class<'static> {
    // SAFETY: only `register` makes classes with this function, each the first part of a `Dynamic` that is never freed.
    let dynamic = unsafe { &*core::ptr::from_ref(class).cast::<Dynamic>() };
    &dynamic.description
}

/// The class with this description: the one that was made before, or a new one, which is never freed and of which all
/// recordings that the process takes part in are told now. `None` if the description is too large for a message, some 60 KiB.
///
/// May wait for recorders, ten seconds each at most. Not for signal handlers.
pub fn register(description: Class<'static>) -> Option<&'static EventClass> {
    let mut buffer = vec![0; MAX_MESSAGE];
    let mut writer = ClassesWriter::new(&mut buffer).ok()?;
    writer.push(&description).ok()?;
    Some(agent::add(writer.finish(), || {
        let dynamic = Box::leak(Box::new(Dynamic { class: EventClass::new(describe), description }));
        // The whole, not only its first part: `describe` goes from one to the other.
        let dynamic: *const Dynamic = dynamic;
        // SAFETY: just leaked.
        unsafe { &*dynamic.cast() }
    }))
}

/// Records an event whose payload is the concatenation of `segments`, laid out as the class's description says
/// (`tracewing_abi::schema`). With `ORDERED` its time stamp cannot precede that of its cause on another processor.
///
/// # Safety
/// Every segment is readable, and stays unchanged meanwhile.
pub unsafe fn record<const ORDERED: bool>(class: &'static EventClass, segments: &[Segment]) {
    // SAFETY: the caller's.
    unsafe { crate::path::gather::<ORDERED>(class, segments) };
}

/// As [`record`], for a payload in one piece. Short ones of whole words, such as a few numbers make, take the faster way of
/// events whose size is constant.
#[inline]
pub fn record_bytes(class: &'static EventClass, payload: &[u8]) {
    macro_rules! fixed {
        ($($length:literal)*) => {
            match payload.len() {
                // SAFETY: that many bytes, which are borrowed.
                $($length => unsafe { crate::path::fixed::<$length, false>(class, payload.as_ptr()) },)*
                // SAFETY: borrowed.
                len => unsafe { record::<false>(class, &[Segment { start: payload.as_ptr(), len }]) },
            }
        };
    }
    fixed!(8 16 24 32 40 48)
}

/// As [`record_bytes`], in the usual case only: no system call, no function of other libraries, and no register but those
/// that every x86-64 has. Says whether that was enough.
#[inline(always)]
pub fn try_record<const LEN: usize>(class: &'static EventClass, payload: &[u8; LEN]) -> bool {
    // SAFETY: that many bytes, which are borrowed.
    unsafe { crate::path::fixed_fast::<LEN, false>(class, payload.as_ptr()) }
}
