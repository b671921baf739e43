//! Fields of the kernel's probes (`kernel/trace/trace_probe.h`). Users choose the names of their classes, so
//! the names here never occur in recordings; the name of a probe at a function's return ends with `%return`.

use crate::declare::readers;

/// Suffix of the names of probes at a function's return.
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
