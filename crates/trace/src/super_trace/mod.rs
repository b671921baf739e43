//! The super-trace (Danjean, Wacrenier, Namyst: An Efficient Multi-level Trace Toolkit, section 2): for each
//! event the CPU, the process, the LWP and the user thread that it belongs to, and the state of each of these
//! at any time.
//!
//! | file | does |
//! |---|---|
//! | `activity` | the aspects of an event that matter to it, whatever trace it comes from |
//! | `adapter` | converts events to activities |
//! | `state` | [`SuperTrace`]: advances with each event |
//! | `moves` | transitions between the states of threads and user threads |
//! | `coverage`, `traces` | what a recording can and cannot contain, as its traces declare |
//! | `cpu`, `lwp`, `user_thread`, `programs` | its parts |
//! | `numbers`, `map`, `comm` | values by small numbers, and by any; names of one size |
//! | `doing`, `fold` | states of threads; changes by events, for analyses |
//! | `serial` | numbers that are not reused |
//! | `unseen` | what was overwritten before streams begin |
//! | `place` | the place of an event |
//! | `seen` | events with their places, in order |
//! | `known`, `stored`, `checkpoint` | the state, and what else is known, as bytes from which reading continues |
//! | `ahead` | the same without the events, decoded and read by another thread |
//! | `column` | columns of conditions |
//!
//! There are two levels, each with its own events: the kernel's scheduler moves LWPs over CPUs, a program's
//! own scheduler moves user threads over LWPs. With the events of only one level, the other's state is
//! unknown. Nothing is guessed: each interval's state is proved by the events around it, or unknown.

mod activity;
mod adapter;
mod ahead;
mod calls;
mod checkpoint;
mod column;
mod comm;
mod counted;
mod coverage;
mod cpu;
mod doing;
mod fold;
mod known;
mod lwp;
mod map;
mod moves;
mod numbers;
mod origins;
mod place;
mod programs;
mod seen;
mod serial;
mod state;
mod stored;
mod traces;
mod unseen;
mod user_thread;

pub use activity::{Activity, Context, Interrupt, Kind, Name, Scope, SwitchCause, TaskState, UserThreadKind};
pub use adapter::Adapter;
pub use ahead::{Ahead, Batch, Batches, Decoded};
pub use checkpoint::{Checkpoint, Pause, Pauses, checkpoint_version};
pub use column::{Column, TimeCondition, Timed};
pub use comm::Comm;
pub use coverage::{Coverage, Interrupts};
pub use doing::{Doing, Mode, Waker};
pub use fold::{Change, Fold};
pub use known::{Known, Part};
pub use lwp::{Lwp, Program};
pub use place::{Carried, Place};
pub use seen::{Follower, Located, Seen};
pub use serial::{LwpSerial, Serial, TaskSerial};
pub use state::SuperTrace;
pub use stored::{Bytes, Stored, shape};
pub use unseen::{AllUnseen, Unseen};
pub use user_thread::UserThread;

pub(crate) use column::mode_word;
pub(crate) use traces::{forget_scope, is_kernel, is_of_interrupt, is_of_system_call};
