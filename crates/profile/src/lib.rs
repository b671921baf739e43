//! Samples and counters from `perf_event_open`, recorded as a CTF trace next to those of programs and of the
//! kernel.
//!
//! "An event that logs the program counter at random times is used to drive statistical execution profiling"
//! (K42's paper, 4.5). Here a cycle counter triggers the samples or, if the machine has none, the CPU's
//! timer. Each sample holds the program counter and the call chains of program and kernel, which the kernel
//! finds by frame pointers. Where programs have none, it can copy the stack instead, which the recorder then
//! follows.
//!
//! | module | does |
//! |---|---|
//! | `attribute` | which perf events are opened, and why the kernel refuses |
//! | `opening` | opens them, here or in another process |
//! | `ring` | the buffer that the kernel writes records into |
//! | `record` | decodes records |
//! | `clock` | converts the records' times to the recording's clock |
//! | `kernel_symbols` | names of kernel functions |
//! | `jit` | samples in code that programs compile at run time |
//! | `generated` | memory of processes for such code |
//! | `perf_map` | the names that programs write for such code |
//! | `map_place` | where a process writes them, and whether they are its own |
//! | `map_reader` | reads them without the risk that a recording hangs |
//! | `unnamed` | why such code has no names |
//! | `unwind` | follows copies of stacks |
//! | `present` | threads and mappings that existed before the recording |
//! | `followed` | threads of running processes that are recorded |
//! | `counters` | counters that are read periodically |
//! | `events` | the trace's event classes and payloads |
//! | `stream` | packets of a stream |
//! | `processes` | which processes records are of |
//! | `writer` | converts records to events |
//! | `sampled` | a CPU that is sampled |
//! | [`ProfileRecorder`] | a whole recording |
//!
//! If the recorder is killed, nothing is left in the kernel: its perf events end with their descriptors.

#![warn(unreachable_pub)]

mod attribute;
mod clock;
mod counters;
mod error;
mod events;
mod followed;
mod generated;
mod jit;
mod kernel_symbols;
mod local_file;
mod map_place;
mod map_reader;
mod opening;
mod perf_map;
mod present;
mod processes;
mod record;
mod recorder;
mod ring;
mod sampled;
mod stream;
mod unnamed;
mod unwind;
mod writer;

pub use attribute::{Subject, check};
pub use error::Error;
pub use followed::Unsampled;
pub use opening::{REQUEST, open, open_by};
pub use record::Stacks;
pub use recorder::{NextTrace, Options, ProfileRecorder, Rotated, Summary};
