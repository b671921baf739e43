//! Finds tracewing's buffers in memory that a program left behind, and gets its last events out: from a core
//! dump, a stopped or running process, files, or bytes.
//!
//! Source: Wisniewski and Rosenburg, *Efficient, Unified, and Scalable Performance Monitoring for
//! Multiprocessor Operating Systems* (004), where a call in the debugger prints the last events of a crashed
//! kernel out of its trace buffers.
//!
//! | module | does |
//! |---|---|
//! | `folder` | the files of a recording as memory |
//! | `mappings` | where in memory buffers can be |
//! | `region` | a buffer region in memory |
//! | `buffer` | one CPU's buffer: which sub-buffers are there, what of them is whole |
//! | `events` | events in a sub-buffer |
//! | `payload` | whether an event's payload is one of its class |
//! | `classes` | what the program's memory says about its event classes |
//! | `trace` | all of it as a CTF trace |
//!
//! Nothing found is trusted: any bytes give events, less of them, or an error; never a panic, and never more
//! memory than the bytes take. What a recorder writes while programs live is `consumer`'s.

mod buffer;
mod classes;
mod error;
mod events;
mod folder;
mod mappings;
mod payload;
mod region;
mod trace;

pub use buffer::{Buffer, Damage, SubBuffer};
pub use classes::Classes;
pub use error::Error;
pub use events::{Event, events};
pub use folder::{BufferFolder, Wanted};
pub use region::{RealTime, Region};
pub use trace::{Recovered, write_trace};
