//! Samples and counters, which `tracewing-profile` takes from the kernel's `perf_event_open`.
//!
//! The context of every event has its thread, `tid`, and its process, `pid`.

use crate::declare::readers;
use crate::field::{Fields, Reader, Recorded, place_of};
use tracewing_units::{Pid, Tid};

/// Passes the declaration of the events of provider `profile` to a macro.
#[macro_export]
macro_rules! profile_events {
    ($($then:ident)::+) => { $($then)::+ ! {
        provider "profile" named "profile:";
        enumerations {
            /// What was running when a sample was taken.
            Mode: u8 {
                /// The program.
                User = 0 "user",
                /// The kernel.
                Kernel = 1 "kernel",
            }
        }
        events {
            /// A sample of what a thread was executing.
            Sample<'e> "sample" {
                /// The program counter.
                ip: u64 [hex],
                /// Count of the triggering event since the previous sample.
                period: u64,
                /// Whether the program or the kernel was running.
                mode: Mode,
                /// Return addresses in the kernel, innermost (the program counter) first.
                kernel: &'e [u64] [hex],
                /// Return addresses in the program, innermost first.
                user: &'e [u64] [hex],
            }

            /// File mapped between two addresses of the process.
            Mapping<'e> "mapping" {
                /// First address.
                begin: u64 [hex],
                /// First address after the mapping.
                end: u64 [hex],
                /// Offset of the mapping in the file.
                offset: u64 [hex],
                /// Path of the file.
                path: &'e str,
                /// Build id of the file in hexadecimal; empty if it has none.
                @optional build_id: &'e str,
            }

            /// A thread is renamed, or its process executes a program.
            Thread<'e> "thread" {
                /// New name.
                name: &'e str,
                /// Whether the process executes a new program; its earlier mappings are gone.
                exec: bool,
            }

            /// A thread or process is created; it has its parent's mappings.
            Fork "fork" {
                /// The new thread.
                child_tid: Tid,
                /// Its process.
                child_pid: Pid,
            }

            /// A function of the kernel; recorded before the first sample in it.
            KernelSymbol<'e> "kernel_symbol" {
                /// First address.
                begin: u64 [hex],
                /// First address after the function.
                end: u64 [hex],
                /// Name of the function.
                name: &'e str,
            }

            /// Counts since the start of the recording, of the recorded process tree or, system-wide, of this
            /// CPU; one field per counter.
            Counters "counters" {}

            /// A function that the process compiled at run time. Its stamp is before the first sample of the
            /// process in such code.
            JitSymbol<'e> "jit_symbol" {
                /// First address.
                begin: u64 [hex],
                /// First address after the function.
                end: u64 [hex],
                /// Name of the function.
                name: &'e str,
            }
        }
    } };
}

profile_events!(readers);

/// Whether the path of a [`Mapping`] says that the code is in no file: the process has written it itself.
pub fn is_generated(path: &[u8]) -> bool {
    [&b"//anon"[..], b"[anon", b"[heap]", b"/memfd:", b"/dev/zero"]
        .iter()
        .any(|start| path.starts_with(start))
}

/// What ran when a [`Sample`] was taken, without the rest of the sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampledMode(pub Option<Mode>);

impl<'e> Reader<'e> for SampledMode {
    #[inline(always)]
    fn read(fields: &impl Fields<'e>) -> Option<Self> {
        const PLACE: usize = place_of(Sample::FIELDS, Sample::mode.name);
        <Mode as Recorded>::read(fields, PLACE).map(Self)
    }
}
