//! Events that a recorder adds to those of programs.

use crate::declare::readers;
use tracewing_units::{Pid, Tid};

readers! {
    provider "tracewing" named "tracewing:";
    enumerations {}
    events {
        /// A thread of a recorded program, as the recorder last saw it.
        KnownThread<'e> "known_thread" [print = "thread {name} of process {pid}"] {
            /// The thread.
            tid: Tid,
            /// Its process.
            pid: Pid,
            /// Its name.
            name: &'e str,
        }
    }
}
