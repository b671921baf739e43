//! Opens trace folders (tracewing's own and any other CTF 1.8 or 2), merges their streams in time order, and prints events.
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
//! | module | does |
//! |---|---|
//! | `find`, `description`, `told` | finds traces below a path; what a recording says of itself, and what of that is missing |
//! | `open` | metadata, and which stream files belong together |
//! | `packet`, `window`, `clock`, `stream`, `stream_events` | one stream: its packets by time, its events, its losses |
//! | `packet_index`, `positions`, `index_source`, `index_cache` | where packets lie, and events inside of large ones, to begin reading at any time |
//! | `merge`, `order` | all streams in one order |
//! | `text`, `text_template`, `text_value`, `stamp`, `style`, `append`, `quote` | lines as babeltrace2 prints them |
//! | `pretty`, `print_form` | lines as the events' author meant them |
//! | `details` | everything, as babeltrace2's details printer lays it out |
//! | `json`, `csv` | lines of JSON, of comma-separated values |
//! | `backwards` | stamps that go back, told once |
//! | `listing` | all of it, as `tracewing list` does it |
//! | `parallel`, `slices` | the same by as many threads as there are CPUs |
//! | `follow`, `tail` | the same of a recording that is being made |
//! | `filter`, `select`, `chooser`, `marks`, `time_range`, `zone` | what of it a user wants to see |
//! | `condition`, `values` | predicates on what is in an event |
//! | `key` | what events are matched by |
//! | [`super_trace`] | who ran where: CPUs, LWPs, user threads, at each event |
//! | `convert`, `export`, `unfinished` | a recording, or a part of it, written: as CTF traces of either version, as a file |
//! | `part`, `naming` | what a part has to carry beside its events |
//! | `stats` | counts, rates, bytes and losses, by as many threads as there are CPUs |
//! | `summary`, `report`, `describe` | what there is in all: counts, losses, times, types |
//!
//! What a file says is not trusted: any bytes give events or an [`Error`] that names file and offset.

mod append;
#[cfg(feature = "test-support")]
pub mod babeltrace2;
mod backwards;
mod carried;
mod chooser;
mod clock;
mod condition;
mod convert;
mod csv;
mod describe;
mod description;
mod details;
mod error;
mod export;
mod filter;
mod find;
mod follow;
mod index_cache;
mod index_source;
mod json;
mod key;
mod listing;
mod marks;
mod merge;
mod naming;
pub mod number;
mod open;
mod order;
mod packet;
mod packet_index;
mod parallel;
mod part;
mod positions;
mod pretty;
mod print_form;
mod quote;
mod report;
mod select;
mod slices;
mod stamp;
mod stats;
mod stream;
mod stream_events;
mod style;
mod summary;
pub mod super_trace;
mod tail;
mod text;
mod text_template;
mod text_value;
mod time_range;
mod told;
mod unfinished;
mod values;
mod window;
mod zone;

pub use convert::{Conversion, Converted, Progress};
pub use description::real_time;
pub use details::print_details;
pub use error::Error;
pub use export::Exported;
pub use filter::{Filter, Level, ThreadPattern};
pub use find::{Found, find};
pub use json::{JsonPrinter, text as json_text};
pub use key::Keys;
pub use listing::{Format, Listing, Sink};
pub use merge::{EventRef, Lost, LostKind, Merge, Message};
pub use open::{Recording, Stream, Trace};
pub use quote::{is_unsafe, shown};
pub use report::{
    ClassReport, ClockReport, FieldReport, LossReport, Report, StreamReport, TraceReport, described,
};
pub use select::Selection;
pub use stamp::Stamp;
pub use stats::{ClassCount, Count, ProcessCount, Statistics, StreamCount};
pub use stream_events::StreamEvents;
pub use style::{ClockStyle, FieldStyle, NameStyle, Style};
pub use text::TextPrinter;
pub use time_range::{TimePoint, TimeRange, parse_duration};
pub use tracewing_rules::{Glob, Predicate, PredicateError, Variable};
pub use unfinished::Unfinished;
pub use zone::{Civil, Zone};

/// A UUID in its usual text form.
pub fn uuid_text(uuid: &[u8; 16]) -> String {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let parts = [&uuid[..4], &uuid[4..6], &uuid[6..8], &uuid[8..10], &uuid[10..]];
    parts.map(hex).join("-")
}
