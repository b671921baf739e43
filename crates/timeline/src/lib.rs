//! What each CPU, LWP and user thread did when: the super-trace's changes as states of tracks, passed to a
//! [`Sink`].
//!
//! | module | does |
//! |---|---|
//! | `states` | [`States`]: the fold from changes to states of tracks |
//! | `state` | what states there are, their classes and names |
//! | `undecided` | states of an LWP that may belong to a user thread |
//!
//! States and their durations are defined by [`tracewing_trace::super_trace`]: no time is added or moved
//! here.

#![warn(unreachable_pub)]

mod state;
mod states;
mod undecided;

pub use state::{CLASSES, Class, StateId, StateNames};
pub use states::{End, Sink, States, Track, TrackId, WokenBy};
