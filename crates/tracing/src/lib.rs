//! Records programs that are instrumented with `tracing` or `log`, at about the price of an event of
//! tracewing's own.
//!
//! ```
//! use tracing::{info, info_span};
//! use tracing_subscriber::prelude::*;
//!
//! tracing_subscriber::registry().with(tracewing_tracing::layer()).init();
//!
//! let _order = info_span!("order", id = 7).entered();
//! info!(customer = "Ada", "placed");
//! ```
//!
//! `tracewing record -- PROGRAM` records it then, as it records programs that use the crate `tracewing`:
//! events and spans of both are in one trace, and inside of each other. While nobody records, all call sites
//! that no other layer wants are off by `tracing`'s own switch.
//!
//! # What becomes of what
//!
//! An event is called `target:name`, or `target:file.rs:line` where it has no name of its own, and has a
//! field `span` (the span that it happened in, 0 for none) and its own fields, with the types that their
//! values have. What cannot be part of a name is replaced by `_`; the originals, level, file and line stand
//! in the description of the event class. `tracewing record -e 'shop::*' --level info --where 'id == 7'`
//! chooses among them.
//!
//! A span is a few events that have its id in common: `target:span_new` with parent and fields, `…_enter` and
//! `…_exit` of threads, `…_record`, `…_follows`, `…_close`; `docs/reference/spans.md` has all of them.
//!
//! Records of the crate `log` become `log:error` to `log:trace`, with the fields `message`, `target`,
//! `module_path`, `file` and `line`: through `tracing`, if the program passes them on to it (`tracing-log`,
//! or `init()` of `tracing_subscriber`, whose default features have that), else with [`init_logger`].
//!
//! # Filters
//!
//! The layer has a filter of its own ([`Wanted`]), which lets through what is recorded and speaks for no
//! other layer. Below or beside other layers, and with filters of the whole subscriber, all is as usual.
//! Wrapped in [`with_filter`](tracing_subscriber::Layer::with_filter) it takes what both want; to have call
//! sites off that only the outer filter wants, put both together:
//! `layer().with_filter(env_filter.and(Wanted))`.
//!
//! # Limits
//!
//! - A span that was made while nobody wanted it is never recorded, also if it lasts: `tracing` has not made
//!   it.
//! - `tracing` does not tell types, so a class is made when an event first shows what its values are, and
//!   other values make another class of the same name. After eight of one call site, all values are recorded
//!   as text. So is each field behind the 32nd; those behind the 250th are not recorded.
//! - A new class is described to recorders by another thread, and no event waits for that. Only flight
//!   recorders, recorders with `--buffers-in` or with rules for some processes, and sessions inside the
//!   program are sent it by the thread that emits. A program that ends waits up to a second for what is being
//!   described; first events that were never described are counted as lost.
//! - A call site is off once all its classes are unwanted. If a condition (`--where`) fits only values of
//!   other types than it has shown so far, they are not found.
//! - The values of an event have at most 8 KiB. Texts that do not fit are cut, with `…` at their end; bytes
//!   without such a mark. A text takes at most half of the room that is left, unless it is the last field.
//! - A call site of which nothing is known yet, and that turns out to be unwanted, is switched off by a
//!   thread that lives some 20 ms for that.

mod classes;
mod entered;
mod interest;
mod layer;
#[cfg(feature = "log")]
mod logger;
mod name;
mod numbers;
mod record;
mod site;
mod spans;
mod values;

pub use interest::Wanted;
pub use layer::{Layer, layer};
#[cfg(feature = "log")]
pub use logger::init_logger;
