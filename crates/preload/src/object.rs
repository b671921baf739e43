//! Locks, and what else the C library has in memory for threads to wait for.

/// A lock, as seen by this library: a place in memory that belongs to the C library.
pub(crate) type Object = core::ffi::c_void;

/// Identifies an object in events: its address.
pub(crate) fn address(object: *const Object) -> u64 {
    object.addr() as u64
}
