//! Finds tracewing's buffers in a program's memory and recovers its last events: from a core dump, a stopped
//! or running process, files, or bytes.
//!
//! Source: Wisniewski and Rosenburg, *Efficient, Unified, and Scalable Performance Monitoring for
//! Multiprocessor Operating Systems* (2003), where a call in the debugger prints the last events of a crashed
//! kernel from its trace buffers.
//!
//! | module | does |
//! |---|---|
//! | `folder` | the buffer files of a recording as memory |
//! | `mappings` | where in memory buffers can be |
//! | `region` | a buffer region in memory |
//! | `buffer` | one CPU's buffer: which sub-buffers exist, and how much of them is whole |
//! | `events` | events in a sub-buffer |
//! | `payload` | whether an event's payload fits its class |
//! | `classes` | event classes in the program's memory |
//! | `trace` | everything as a CTF trace |
//!
//! Nothing found is trusted: any bytes give events, fewer events, or an error; never a panic, and never more
//! memory than the bytes take. The crate `consumer` writes the trace while programs run.

#![warn(unreachable_pub)]

mod buffer;
mod classes;
mod error;
mod events;
mod folder;
mod mappings;
mod payload;
mod region;
mod trace;

pub use buffer::{Buffer, Damage, DamageCause, SubBuffer};
pub use classes::Classes;
pub use error::{Error, RegionFault};
pub use events::{Event, events};
pub use folder::{BufferFolder, Selection};
pub use region::{RealTime, Region};
pub use trace::{Recovered, write_trace};
