//! What the recorder and the library that it pre-loads to record locks (`tracewing-preload`) have to agree
//! on.

/// The library's file name.
pub const LIBRARY: &str = "libtracewing_preload.so";

/// The environment variable that tells the library of which acquisitions it finds call chains: of those that
/// wait, unless it has one of the values below.
pub const CHAINS_VARIABLE: &str = "TRACEWING_LOCK_CHAINS";

/// Of all.
pub const ALL_CHAINS: &str = "all";

/// Of none.
pub const NO_CHAINS: &str = "none";
