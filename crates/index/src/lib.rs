//! An index of a recording on disk: what each CPU, process, thread and task did when, in a form from which
//! any window is drawn and summed in a time that depends on the width of the screen, not on the number of
//! events.
//!
//! | module | does |
//! |---|---|
//! | `cache` | [`Cache`]: where indexes are kept, and for how long |
//! | `make`, `builder`, `blocks`, `writer`, `table`, `parts`, `own`, `system`, `counters` | the one pass over a recording that makes it |
//! | `now` | the index up to now, while the pass continues |
//! | `live`, `filling` | the same pass while the recording is made, or while what it has found is shown |
//! | `format` | the file: head, tail ([`Tail`]), foot |
//! | `row` | [`Row`]: what has states over time, and where its blocks are |
//! | `leaf`, `levels` | blocks: every state; buckets of time in which much happens |
//! | `values` | blocks of values of counters, and what a bucket says of them |
//! | `checkpoints` | [`Kept`]: states at a few times, from which readers of the recording continue |
//! | `index` | [`Index`]: reads blocks, trusts none of them |
//! | `processes` | rows of processes, and of tasks of one name |
//! | `groups`, `together` | what all members of such a row did together |
//! | `picture` | what a row did in each of many buckets |
//! | `readings` | the values of a counter one by one, and in each of many buckets |
//! | `spans` | the states of a row one by one |
//! | `statistics` | how long a row was in each state within a window |
//! | `wakes`, `woken` | blocks of wakes; what woke a row |
//! | `identity` | which recording it is of |
//! | `bytes`, `body`, `error` | numbers and sums; writing; why there is no index |
//!
//! States and times are those of [`tracewing_analysis::Threads`] of the whole recording. A window's are
//! these, cut at its ends. The analysis of that window alone does not know later events: where one shows that
//! a state was assumed that cannot have lasted, only the index knows that it is unknown.
//!
//! ```no_run
//! use std::ops::ControlFlow;
//! use tracewing_index::{Cache, Window};
//! use tracewing_trace::Recording;
//! use tracewing_units::Duration;
//!
//! let recording = Recording::open(&["my-trace"])?;
//! let cache = Cache::new(None)?;
//! cache.make(&recording, &mut |_| ControlFlow::Continue(()))?;
//! let index = cache.find(&recording).expect("made just now");
//! let window = Window::covering(Duration::ZERO, index.tail().length, 1920);
//! for (row, _) in index.rows() {
//!     let buckets = index.picture(row, window)?;
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![warn(unreachable_pub)]

mod blocks;
mod body;
mod builder;
mod bytes;
mod cache;
mod checkpoints;
mod counters;
mod error;
mod filling;
mod format;
mod groups;
mod identity;
mod index;
mod leaf;
mod levels;
mod live;
mod make;
mod now;
mod own;
mod parts;
mod picture;
mod processes;
mod readings;
mod row;
mod spans;
mod statistics;
mod system;
mod table;
#[cfg(test)]
mod tests;
mod together;
mod values;
mod wakes;
mod woken;
mod writer;

pub use cache::Cache;
pub use checkpoints::Kept;
pub use error::{Damage, Damaged, Error};
pub use format::{LossMark, State, Tail};
pub use index::Index;
pub use leaf::Span;
pub use levels::Content;
pub use make::Made;
pub use now::{Changes, Look, NEW};
pub use picture::{Bucket, Window};
pub use row::{Counter, Row, RowId, RowKind};
pub use tracewing_timeline::{CLASSES, Class, StateId};
pub use values::{Value, Values};
pub use wakes::Waker;
