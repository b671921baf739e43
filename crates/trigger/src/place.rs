//! What a site is given by types: its description, and the function that it calls.

use tracewing_abi::site::Site;

/// A site's place in the source. Each place has a type of its own, since the type determines the site's data.
pub trait Place {
    /// The site's description.
    const SITE: &'static Site;
}

/// A function that a site calls, by [`cold_call`](crate::cold_call) or [`cold_call_at`](crate::cold_call_at).
pub trait Callee {
    /// The function. A panic in it aborts the program. `cold_call` passes words as `second`, after an
    /// address in the code of the site: in the 8 bytes before them.
    ///
    /// # Safety
    /// The implementation's own conditions.
    unsafe extern "C" fn call(first: *const (), second: *const u8);
}
