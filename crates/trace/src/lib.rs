//! Opens trace folders (tracewing's own and any other CTF 1.8 or 2), merges their streams in time order, and
//! prints events.
//!
//! ```no_run
//! use tracewing_trace::{Merge, Message, Recording, Style, TextPrinter, TimeRange};
//!
//! let recording = Recording::open(&["my-trace"])?;
//! let mut printer = TextPrinter::new(Style::default(), &recording);
//! let mut merge = Merge::new(&recording, TimeRange::ALL);
//! let mut line = Vec::new();
//! while let Some(message) = merge.advance()? {
//!     if let Message::Event(event) = message {
//!         line.clear();
//!         printer.event(&mut line, &event);
//!         print!("{}", String::from_utf8_lossy(&line));
//!     }
//! }
//! # Ok::<(), tracewing_trace::Error>(())
//! ```
//!
//! | layer, from the bottom | does |
//! |---|---|
//! | `append`, `time`, `threads`, `error` | numbers and texts as bytes; clocks, ranges and zones; threads that share
//! work; errors |
//! | `stream` | one stream: its packets by time, its events, its losses; indexes to begin reading at any time |
//! | `open` | finds traces below a path; metadata, files that belong together; a recording's description, and
//! what is missing |
//! | `merge` | all streams in one order |
//! | [`super_trace`] | CPUs, LWPs and user threads: the place of each event, and the state of each of them at
//! any time |
//! | `select` | selects events of a recording; keys that events are matched by |
//! | `print` | events as lines of text, JSON or comma-separated values, by as many threads as there are CPUs |
//! | `info` | counts, rates, losses, times, types |
//! | `rewrite` | writes a recording, or an extract of it: as CTF traces of either version, as a file |
//!
//! File content is not trusted: any bytes result in events or an [`Error`] that names file and offset.

#![warn(unreachable_pub)]

mod append;
mod error;
mod info;
mod merge;
mod open;
mod print;
mod rewrite;
mod select;
mod stream;
pub mod super_trace;
mod threads;
mod time;
mod uuid;

pub use append::number;
pub use append::quote::{is_unsafe, shown};
pub use error::{Error, NoFit, NoTrace, StreamFault, UsageFault};
pub use info::report::{
    ClassReport, ClockReport, FieldReport, LossReport, Report, StreamReport, TraceReport,
};
pub use info::stats::{ClassCount, Count, ProcessCount, Statistics, StreamCount};
pub use merge::event::{EventRef, Message};
pub use merge::fields::{Actor, Classes, Places, known};
pub use merge::growing::Growing;
pub use merge::messages::Merge;
pub use merge::outline::Outline;
pub use merge::stream_events::StreamEvents;
pub use open::description::{described, real_time};
pub use open::find::{Found, find};
pub use open::gone::{GoneStream, GoneTrace};
pub use open::recording::{Checkpoints, Recording, Stream, Trace};
pub use print::details::print_details;
pub use print::json::{JsonPrinter, text as json_text};
pub use print::listing::{Listing, Sink};
pub use print::style::{ClockStyle, FieldStyle, Format, NameStyle, Style};
pub use print::text::TextPrinter;
pub use rewrite::convert::{Conversion, Converted, Progress};
pub use rewrite::export::Exported;
pub use rewrite::unfinished::Unfinished;
pub use select::filter::{Filter, Level};
pub use select::key::Keys;
pub use select::no_event::NoEvent;
pub use select::selection::Selection;
pub use stream::cursor::{Lost, LostKind};
pub use stream::losses::Losses;
pub use time::range::{TimePoint, TimeRange, parse_duration};
pub use time::stamp::Stamp;
pub use time::zone::{Civil, Zone};
pub use tracewing_rules::{Glob, Predicate, PredicateError, ThreadPattern, Variable};
pub use uuid::uuid_text;
