//! A recording: starts a command, lets every traced program of its process tree join, drains their buffers
//! and the kernel's, and leaves a trace folder.
//!
//! | module | does |
//! |---|---|
//! | [`recorder`] | the recording from begin to end: its start, its loop, what each descriptor and each timer leads to, its end |
//! | `poll` | the descriptors that it waits for |
//! | `timers` | when something is due |
//! | `course` | how long it lasts: command, signals, time |
//! | `drains` | what it drains besides the buffers of programs |
//! | [`options`] | what can be asked for, with defaults |
//! | [`outcome`] | what a recording amounts to |
//! | `socket` | the private socket that programs find through their environment |
//! | `entrance` | where connections arrive |
//! | `flight` | how many snapshots a flight recorder has taken, and may be asked for |
//! | `processes` | processes that ran already and are recorded |
//! | `ask` | a recording that runs, seen from outside |
//! | [`running`] | the recordings of this machine, as `tracewing snapshot` and `enable` find them |
//! | [`change`] | what can be changed in one that runs |
//! | `limits` | what a process, a user and all users may take |
//! | `refusal` | why a process that runs already is not recorded |
//! | `scope` | of which threads the kernel's events and samples are |
//! | `not_joined` | why a process gets no buffers |
//! | `join` | what joining programs get: buffers, ids, a line in the description |
//! | [`preload`] | the library that records locks and functions, pre-loaded under the command |
//! | `obstacle` | what prevents that |
//! | `seccomp` | which programs are filtered for system calls, and may not be asked for anything |
//! | `left_out` | those that did not join for that |
//! | `kernel` | kernel events, where they can be had |
//! | `profile` | samples and counters, where they are wanted |
//! | `attached`, `attacher` | attaches to processes that run |
//! | `doors` | how those, and their children, make connections |
//! | `client` | one connection: handshake, changes, questions |
//! | `connections` | all of them |
//! | `changes` | changes of a running recording that programs have yet to confirm |
//! | `rules` | the event rules, and how they fit the classes that there are |
//! | `program` | a process, as `/proc` shows it |
//! | `regions` | the buffers of all programs |
//! | `maker` | how they are made |
//! | `domain` | which programs may share them, where that is asked for |
//! | `past` | what a flight recorder keeps of programs that have ended |
//! | `ended` | what regions amount to that are finished |
//! | `threads` | the threads of programs, for a flight recorder's snapshots |
//! | `child` | the recorded command |
//! | `places` | whether the recording's folders are still where they were made |
//! | `priority` | the recorder's share of the CPUs |
//! | `signals` | Ctrl-C and its like, as events of the loop |
//! | `system` | limits and descriptors |
//!
//! Draining itself is the `consumer` crate's; payloads are not looked at here. The recorder never waits for a
//! program: one that hangs, lies or dies in the middle of its handshake costs a closed socket.

mod ask;
mod attached;
mod attacher;
pub mod change;
mod changes;
mod child;
mod client;
mod connections;
mod course;
mod credentials;
mod domain;
mod doors;
mod drains;
mod ended;
mod entrance;
mod error;
mod flight;
mod join;
mod kernel;
mod left_out;
mod limits;
mod maker;
mod not_joined;
mod obstacle;
pub mod options;
pub mod outcome;
mod past;
mod places;
mod poll;
pub mod preload;
mod priority;
mod processes;
mod profile;
mod program;
pub mod recorder;
mod refusal;
mod regions;
mod rules;
pub mod running;
mod scope;
mod seccomp;
mod signals;
mod socket;
mod system;
mod threads;
mod timers;

#[doc(hidden)]
pub use attached::calls_of_programs;
pub use error::Error;
pub use options::Options;
pub use outcome::{Outcome, Summary};
pub use recorder::{Observer, Progress, record};
pub use refusal::Refusal;
pub use signals::is_ignored;
