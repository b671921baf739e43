//! A value with cache lines of its own (two, since processors fetch them in pairs), so that CPUs that write
//! to neighbours do not take them from each other.

/// Shares its cache lines with nothing.
#[repr(align(128))]
pub struct Padded<T>(pub T);
