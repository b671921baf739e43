//! The super-trace (Danjean, Wacrenier, Namyst: An Efficient Multi-level Trace Toolkit, section 2): for each
//! event the CPU, the process, the LWP and the user thread that it belongs to, and for each of these what it
//! did at any time.
//!
//! | file | does |
//! |---|---|
//! | `activity` | what it sees of an event, whatever trace it comes from |
//! | `adapter` | makes that from events |
//! | `state` | [`SuperTrace`]: moves on with each event |
//! | `moves` | from which state to which threads and user threads move |
//! | `coverage`, `traces` | what a recording can and cannot know, as its traces say |
//! | `cpu`, `lwp`, `user_thread`, `programs` | its parts |
//! | `numbers`, `map`, `comm` | values by small numbers, and by any; names of one size |
//! | `doing`, `fold` | what threads do; what changes by an event, which analyses take |
//! | `serial` | numbers of its own |
//! | `unseen` | what was overwritten before streams begin |
//! | `place` | where an event belongs |
//! | `seen` | events with their places, one after the other |
//! | `column` | what conditions can ask of a place |
//!
//! Two levels, each by its own events: the kernel's scheduler moves LWPs over CPUs, a program's own moves
//! user threads over LWPs. With the events of one level only, the other's part is unknown. Nothing is made
//! up: each time is what the events around it prove, or unknown.

mod activity;
mod adapter;
mod calls;
mod column;
mod comm;
mod coverage;
mod cpu;
mod doing;
mod fold;
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
mod traces;
mod unseen;
mod user_thread;

pub use activity::{Activity, Context, Interrupt, Kind, Name, Scope, SwitchCause, TaskState, UserThreadKind};
pub use adapter::Adapter;
pub use column::{Column, TimeCondition, Timed};
pub use comm::Comm;
pub use coverage::{Coverage, Interrupts};
pub use doing::{Doing, Mode, Waker};
pub use fold::{Change, Fold};
pub use lwp::{Lwp, Program};
pub use place::{Carried, Place};
pub use seen::{Follower, Seen};
pub use serial::{LwpSerial, Serial, TaskSerial};
pub use state::SuperTrace;
pub use unseen::{AllUnseen, Unseen};
pub use user_thread::UserThread;

pub(crate) use column::mode_word;
pub(crate) use traces::{forget_scope, is_kernel, is_of_interrupt, is_of_system_call};
