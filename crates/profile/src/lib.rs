//! Samples and counters by `perf_event_open`, recorded as a CTF trace beside those of programs and of the
//! kernel.
//!
//! "An event that logs the program counter at random times is used to drive statistical execution profiling"
//! (K42's paper, 4.5). Here the times are those of a counter of cycles or, where the machine has none, of the
//! CPU's clock, and with the program counter come the call chains of program and kernel, as the kernel finds
//! them by frame pointers.
//!
//! | module | does |
//! |---|---|
//! | `attribute` | what is asked of the kernel, and what its refusals mean |
//! | `ring` | the buffer that the kernel writes records into |
//! | `record` | what records say |
//! | `clock` | from the records' clock to the recording's |
//! | `kernel_symbols` | names of the kernel's functions |
//! | `present` | processes that were there before |
//! | `followed` | the threads of processes that are recorded while they run |
//! | `counters` | counters that are read now and then |
//! | `events` | the trace's event classes and payloads |
//! | `stream` | packets of one CPU |
//! | [`ProfileRecorder`] | a whole recording |
//!
//! Nothing is left when the recorder is killed: the kernel's side ends with its descriptors.

mod attribute;
mod clock;
mod counters;
mod error;
mod events;
mod followed;
mod kernel_symbols;
mod present;
mod record;
mod recorder;
mod ring;
mod stream;

pub use attribute::{Subject, check};
pub use error::Error;
pub use recorder::{Options, ProfileRecorder, Summary};
