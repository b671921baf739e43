//! Analyses: each a fold over the merged events of a recording that gives a table.
//!
//! | module | does |
//! |---|---|
//! | `activity` | what the analyses see of an event, whatever trace it comes from |
//! | `adapter` | makes that from the events of `tracewing-trace` |
//! | [`Threads`] | where the time of each thread went |
//! | `lwp` | one thread's part of it |
//!
//! No analysis reads files or prints; none fails: an event that it cannot match leaves time unknown, and says so.

mod activity;
mod adapter;
mod lwp;
mod threads;

pub use activity::{Activity, Kind, Scope};
pub use adapter::Adapter;
pub use threads::{Thread, Threads, ThreadsTable};
