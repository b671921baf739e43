//! Sites that are compiled out: the interface of `site`, always off.

use crate::Place;

/// `false`, at compile time.
#[inline(always)]
pub const fn is_on<P: Place>() -> bool {
    false
}
