//! Event classes that are made while the program runs: for bridges from other instrumentation, whose events
//! have no declaration that the compiler knows. They have no site; code that emits them checks
//! [`EventClass::is_on`] first.

use tracewing_abi::schema::Class;

use crate::agent;
pub use crate::agent::{changes, is_recorded, on_change};
pub use crate::class::EventClass;
use crate::path::Gathered;
pub use crate::path::Segment;
pub use tracewing_ring::opened;

/// What a thread is in: for bridges whose spans have no guard.
pub mod span {
    pub use crate::span::{enter, innermost, leave, next_id};
}

/// The functions that make children on their parent's memory, name threads, or install filters for system
/// calls, which this crate intercepts: for libraries that interpose the C library.
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
pub mod children {
    pub use crate::agent::filtered::{noticed_prctl as prctl, noticed_syscall as syscall};
    pub use crate::agent::names::noted_setname as pthread_setname_np;
    pub use crate::agent::vfork::{noticed_clone as clone, noticed_vfork as vfork};
}

/// The class with this description: the one that was made before, or a new one, which is never freed. `None`
/// if the description is too large for a message, some 60 KiB. Allocates, and makes no other system call; not
/// for signal handlers.
///
/// This asks no recorder: at first, the class is enabled in all recordings of the process, and its events
/// contain its description. The recorder then applies the rules to these events, too.
pub fn register(description: Class<'static>) -> Option<&'static EventClass> {
    agent::register(description)
}

/// Records an event whose payload is the concatenation of `segments`, laid out as the class's description
/// says (`tracewing_abi::schema`). With `ORDERED` its time stamp cannot precede that of its cause on another
/// processor. `site` is the address of the code that emits it, for recordings that ask for that; 0 if it is
/// not known.
///
/// # Safety
/// Every segment is readable, and stays unchanged during the call.
pub unsafe fn record<const ORDERED: bool>(class: &'static EventClass, segments: &[Segment], site: usize) {
    // SAFETY: the caller's.
    unsafe { crate::path::gather::<ORDERED>(class, &Gathered { segments, site }) };
}

/// Like [`record`], for a payload in one piece. Short payloads of whole words, such as a few numbers, take
/// the faster path of events with constant size.
#[inline]
pub fn record_bytes(class: &'static EventClass, payload: &[u8], site: usize) {
    macro_rules! fixed {
        ($($length:literal)*) => {
            match payload.len() {
                // SAFETY: that many bytes, which are borrowed.
                $($length => unsafe { crate::path::fixed::<$length, false>(class, payload.as_ptr(), site) },)*
                // SAFETY: borrowed.
                len => unsafe { record::<false>(class, &[Segment::new(payload.as_ptr(), len)], site) },
            }
        };
    }
    fixed!(8 16 24 32 40 48)
}

/// As [`record_bytes`], in the usual case only: no system call, no function of other libraries, and no
/// register but those that every x86-64 has. Says whether that was enough.
#[inline(always)]
pub fn try_record<const LEN: usize>(class: &'static EventClass, payload: &[u8; LEN]) -> bool {
    // SAFETY: that many bytes, which are borrowed.
    unsafe { crate::path::fixed_fast::<LEN, false>(class, payload.as_ptr()) }
}
