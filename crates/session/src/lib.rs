//! A recording: starts a command, lets every traced program of its process tree join, drains their buffers
//! and the kernel's, and leaves a trace folder.
//!
//! | module | does |
//! |---|---|
//! | [`recorder`] | the recording from begin to end: its start, its loop, what each descriptor and each timer leads to, its end |
//! | `poll` | the descriptors that it waits for |
//! | `timers` | when something is due |
//! | `course` | how long it lasts: command, signals, time |
//! | `drains` | sources other than programs: the kernel, samples, names of threads |
//! | [`options`] | options of a recording, with defaults |
//! | [`outcome`] | the result of a recording: totals, losses, notes |
//! | `socket` | the private socket that programs find through their environment |
//! | `entrance` | where connections arrive |
//! | `listing` | the file by which all programs that start find it |
//! | `archives` | the archives of a rotated recording |
//! | `on_archive` | the command that is run for each archive |
//! | `trigger` | what is done when an event comes |
//! | `flight` | the snapshots of a flight recorder, and how many may be requested |
//! | `share` | what they may have of the room of a session |
//! | `processes` | processes that ran already and are recorded |
//! | `ask` | a running recording, as other processes see it |
//! | `contact` | connections to them |
//! | `survey` | asks them all at once |
//! | [`running`] | the recordings of this machine, as `tracewing snapshot` and `enable` find them |
//! | [`change`] | changes of a running recording |
//! | `limits` | what a process, a user and all users may take |
//! | `refusal` | why a process that runs already is not recorded |
//! | `scope` | of which threads the kernel's events and samples are |
//! | `not_joined` | why a process gets no buffers |
//! | `join` | what joining programs get: buffers, ids, a line in the description |
//! | [`preload`] | the library that records locks and functions, pre-loaded under the command |
//! | `obstacle` | why it cannot be loaded into a program |
//! | `seccomp` | which programs have a seccomp filter, and get no requests |
//! | `left_out` | programs that did not join for that reason |
//! | `kernel` | kernel events |
//! | `profile` | samples and counters |
//! | `attached`, `attacher` | attaches to running processes |
//! | `attaches` | by which processes of a recorder |
//! | `doors` | how attached processes and their children connect |
//! | `client` | one connection: handshake, changes, questions |
//! | `connections` | all connections |
//! | `changes` | changes of a running recording that programs have yet to confirm |
//! | `rules` | the event rules, and which classes they apply to |
//! | `program` | a process, as `/proc` shows it |
//! | `regions` | the buffers of all programs |
//! | `maker` | makes buffers |
//! | `domain` | which programs may share buffers (`--buffers user`) |
//! | `past` | buffers of programs that have ended, kept by a flight recorder |
//! | `ended` | totals of finished regions |
//! | `context` | the context of threads, recorded once and when it changes (`--context`) |
//! | `threads` | the threads of programs, for a flight recorder's snapshots |
//! | `child` | the recorded command |
//! | `helpers` | processes that do for a recorder of root what needs rights |
//! | `runner` | runs the programs that the user has named for archives and triggers |
//! | `confine` | what a recorder of root gives up |
//! | `fence` | what it may change in the file system |
//! | `places` | whether the recording's folders are still where they were made |
//! | `priority` | the recorder's share of the CPUs |
//! | `signals` | Ctrl-C and other signals, as events of the loop |
//! | `system` | limits and descriptors |
//!
//! The crate `consumer` drains the buffers; this crate does not read payloads. The recorder never waits for a
//! program: one that hangs, lies or dies in the middle of its handshake costs a closed socket.

#![warn(unreachable_pub)]

mod archive_names;
mod archives;
mod ask;
mod attached;
mod attacher;
mod attaches;
pub mod change;
mod changes;
mod child;
mod client;
mod confine;
mod connections;
mod contact;
mod context;
mod course;
mod credentials;
mod domain;
mod doors;
mod drains;
mod embedded;
mod ended;
mod entrance;
mod error;
mod fence;
mod flight;
mod helpers;
mod join;
mod kernel;
mod left_out;
mod limits;
mod listing;
mod looks;
mod maker;
mod not_joined;
mod obstacle;
mod on_archive;
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
mod remover;
mod rules;
mod runner;
pub mod running;
mod scope;
mod seccomp;
mod share;
mod shared;
mod signals;
mod socket;
mod survey;
mod system;
mod threads;
mod timers;
mod trigger;

#[doc(hidden)]
pub use attached::calls_of_programs;
pub use credentials::user_of;
pub use error::Error;
pub use listing::open_folder;
pub use options::Options;
pub use outcome::{Outcome, Summary};
pub use recorder::{Observer, Progress, record};
pub use refusal::Refusal;
pub use signals::is_ignored;
pub use socket::MOST_RECORDERS;
