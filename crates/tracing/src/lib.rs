//! Records programs that are instrumented with `tracing` or `log`, at about the cost of tracewing's own
//! events.
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
//! `tracewing record -- PROGRAM` then records it like a program that uses the crate `tracewing`: events and
//! spans of both are in one trace, and can be nested. While there is no recording, `tracing`'s own switch
//! disables all call sites that no other layer enables.
//!
//! # Names and fields
//!
//! An event is called `target:name`, or `target:file.rs:line` if it has no name of its own. It has a field
//! `span` (the span that it happened in, 0 for none) and its own fields, with the types of their values.
//! Characters that cannot be part of a name are replaced by `_`; the originals, level, file and line are
//! stored in the description of the event class. `tracewing record -e 'shop::*' --level info --where 'id ==
//! 7'` selects some of them.
//!
//! A span is a few events that share its id: `target:span_new` with parent and fields, `…_enter` and `…_exit`
//! of threads, `…_record`, `…_follows`, `…_close`; `docs/reference/spans.md` lists all of them.
//!
//! Records of the crate `log` become `log:error` to `log:trace`, with the fields `message`, `target`,
//! `module_path`, `file` and `line`: through `tracing`, if the program forwards them to it (`tracing-log`, or
//! `init()` of `tracing_subscriber` with its default features), otherwise with [`init_logger`].
//!
//! # Filters
//!
//! The layer has a filter of its own ([`Recorded`]), which enables what is recorded and speaks for no other
//! layer. Among other layers, and with filters of the whole subscriber, it behaves like any layer. Wrapped in
//! [`with_filter`](tracing_subscriber::Layer::with_filter) it takes what both filters enable; to switch off
//! call sites that only the outer filter enables, combine both:
//! `layer().with_filter(env_filter.and(Recorded))`.
//!
//! # Limits
//!
//! - A span that began while no recording enabled it is never recorded, even if it lasts: `tracing` has not
//!   created it.
//! - `tracing` does not know types, so a class is created when an event first shows its values, and values of
//!   other types create another class of the same name. After eight classes of one call site, all values are
//!   recorded as text. So is each field after the 32nd; fields after the 250th are not recorded.
//! - Another thread describes a new class to recorders, and no event waits for that. Only for flight
//!   recorders, recorders with `--buffers-in` or with rules for some processes, and sessions inside the
//!   program, the emitting thread sends the description. A program that ends waits up to a second for pending
//!   descriptions; first events of classes that were never described are counted as lost.
//! - A call site is off once all its classes are disabled. If a condition (`--where`) fits only values of
//!   types that the call site has not shown so far, such values are not recorded.
//! - The values of an event have at most 8 KiB. Texts that do not fit are cut, with `…` at their end; bytes
//!   are cut without a mark. A text takes at most half of the remaining space, unless it is the last field.
//! - A call site that is new and turns out to be disabled is switched off by a thread that lives about 20 ms
//!   for that purpose.

#![warn(unreachable_pub)]

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

pub use interest::Recorded;
pub use layer::{Layer, layer};
#[cfg(feature = "log")]
pub use logger::init_logger;
