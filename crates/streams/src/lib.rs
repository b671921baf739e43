//! Writes the data streams of tracewing's traces, whatever recorded their events.
//!
//! | module | does |
//! |---|---|
//! | `folder` | [`TraceDir`]: a trace's folder, with its metadata and the folder of indexes |
//! | `packets` | [`Packets`]: header, context and index entry of each packet of a stream. Sans-IO |
//! | `stream` | [`Stream`]: the file with the packets, and its index |
//! | `gathered` | [`Gathered`]: events of the kernel and of profiles, until they fill a packet |
//!
//! The layouts are in `tracewing_ctf::write` and `tracewing_ctf::index`.

#![warn(unreachable_pub)]

mod error;
mod folder;
mod gathered;
mod packets;
mod stream;

pub use error::Error;
pub use folder::TraceDir;
pub use gathered::Gathered;
pub use packets::{PacketTimes, Packets};
pub use stream::Stream;
