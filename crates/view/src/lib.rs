//! The viewer: a server on the loopback interface that answers what a page in the browser asks about a
//! recording. It answers from the recording's index ([`tracewing_index`]), so that a picture of any window
//! costs the same; events are read from the recording itself.
//!
//! | module | does |
//! |---|---|
//! | `server` | [`Server`]: accepts connections, within limits, until it is stopped |
//! | `answer` | which request gets which answer |
//! | `guard` | which requests get none: those of other hosts, origins and users |
//! | `token` | [`Token`]: what the user's browser knows and other users do not |
//! | `browser` | [`Opening`]: starts a browser, in a process group of its own; other users do not see the token |
//! | `recording` | a recording and its index, which is made if there is none |
//! | `choice` | which rows a page has of an index with very many |
//! | `notes` | what the user notes about a recording |
//! | `filters` | what a text chooses: options of the command line, and words |
//! | `events` | shows events that a filter lets through, one by one |
//! | `marks` | events of chosen names: how many there are, and where |
//! | `series` | values of a field of events, as a counter |
//! | `search`, `jobs` | searches among events, and analyses |
//! | `passes`, `places` | work in threads of its own, of which few run at a time |
//! | `api` | the answers: one module each |
//! | `page` | the page's files, which are part of the program |
//! | `reply`, `error` | answers as bytes; errors |
//!
//! Other users of the machine can connect to the server. They get the page, which is the same for everybody,
//! and nothing of the recording.

#![warn(unreachable_pub)]

mod answer;
mod api;
mod browser;
mod choice;
mod error;
mod events;
mod filters;
mod guard;
mod jobs;
mod marks;
mod members;
mod notes;
mod page;
mod passes;
mod places;
mod recording;
mod reply;
mod search;
mod series;
mod server;
mod token;

pub use browser::{Opening, Started, Starting};
pub use error::Error;
pub use server::{Server, State};
pub use token::Token;
