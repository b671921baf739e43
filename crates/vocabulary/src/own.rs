//! What the tracer itself says in a program's events: which threads there are.

use crate::declare::readers;
use crate::ids::Pid;

/// Hands the declaration of the events of provider `tracewing` to a macro.
#[macro_export]
macro_rules! own_events {
    ($($then:ident)::+) => { $($then)::+ ! {
        provider "tracewing" named "tracewing:";
        enumerations {}
        events {
            /// First event of a thread: its process, and its name as far as known without a system call.
            Thread<'e> "thread" [level = "info", print = "thread {name} of process {pid}"] {
                /// Its process.
                pid: Pid,
                /// Its name.
                name: &'e str,
            }
        }
    } };
}

own_events!(readers);
