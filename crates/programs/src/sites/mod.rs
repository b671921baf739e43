//! Lists the instrumentation points of a program: those of its file and of the libraries that it needs,
//! without running it, and those of a running process, with their states.
//!
//! Source of the layouts: `tracewing_abi::site`. An object's ELF note leads to the records of its sites, a
//! record to a function that returns the address of the site's description, the description to the event
//! class and its fields.
//!
//! | module | does |
//! |---|---|
//! | `records` | where an object's records are |
//! | `code` | the address that a record's function returns |
//! | `describe` | site, class and fields from memory |
//! | `listing`, `site` | the complete list |
//!
//! Nothing is trusted, of a file or of a process: any bytes give sites, fewer sites, or an error; never a
//! panic, and never more memory than fixed bounds allow. This module switches nothing; recorders ask a
//! program to do that.

mod code;
mod describe;
mod listing;
mod records;
mod site;

pub use listing::Listing;
pub use site::{Class, Field, Site, State};
