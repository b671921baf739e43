//! The contract between the recorder and the library that it pre-loads (`tracewing-preload`) for recording
//! locks.

/// The library's file name.
pub const LIBRARY: &str = "libtracewing_preload.so";

/// The environment variable that selects the acquisitions that the library records call chains of: those that
/// wait, unless it has one of the values below.
pub const CHAINS_VARIABLE: &str = "TRACEWING_LOCK_CHAINS";

/// Value of [`CHAINS_VARIABLE`]: call chains of all acquisitions.
pub const ALL_CHAINS: &str = "all";

/// Value of [`CHAINS_VARIABLE`]: no call chains.
pub const NO_CHAINS: &str = "none";
