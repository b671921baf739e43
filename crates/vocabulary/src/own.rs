//! The tracer's own events about a program: its threads, and the panic after which a snapshot is taken.

use crate::declare::readers;
use tracewing_units::Pid;

/// Passes the declaration of the events of provider `tracewing` to a macro.
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

            /// The program panicked (`tracewing::snapshot_on_panic`).
            Panic<'e> "panic" [level = "error", print = "panic: {message} ({file}:{line})"] {
                /// What it panicked with.
                message: &'e str,
                /// Source file.
                file: &'e str,
                /// Line.
                line: u32,
            }
        }
    } };
}

own_events!(readers);
