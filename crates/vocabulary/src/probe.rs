//! Fields of the kernel's probes (`kernel/trace/trace_probe.h`). Their classes have the names that users give
//! them, so those here are never in recordings; one that is reached when its function returns has `%return`
//! behind its name.

use crate::declare::readers;

/// What the names of probes end with that are reached when a function returns.
pub const AT_RETURN: &str = "%return";

readers! {
    provider "probe" named "probe:";
    enumerations {}
    events {
        /// A thread comes to the place of the probe.
        Reached "reached" {
            /// The address of the place.
            ip: u64,
        }

        /// A function returns.
        Returned "returned" {
            /// The address of the function.
            func: u64,
        }
    }
}
