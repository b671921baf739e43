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

        /// The context of a thread, from a time on: how the recorder has found it, or found it changed. The
        /// fields after `since` are those that `--context` names; an empty text, or the number 4294967295,
        /// stands for a value that is unknown.
        ThreadContext<'e> "thread_context" [print = "thread {tid} of process {pid}"] {
            /// The thread.
            tid: Tid,
            /// Its process.
            pid: Pid,
            /// The time from which on it holds, on the recording's clock: the thread's begin, or when a
            /// change was seen.
            since: u64 [unit = "cycles"],
            /// Name of the process's first thread.
            @optional process: &'e str,
            /// Name of the thread.
            @optional thread: &'e str,
            /// Real user id.
            @optional uid: u32,
            /// Real group id.
            @optional gid: u32,
            /// Path of its control group.
            @optional cgroup: &'e str,
            /// Its namespaces, as in `/proc/PID/ns`: `mnt:4026531841 net:4026531840`, and so on.
            @optional namespaces: &'e str,
        }
    }
}
