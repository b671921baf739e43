//! Everything that two processes share in a recording, defined once: the buffer region in shared memory
//! ([`region`]), the bytes of an event ([`event`]), the handshake over the recorder's socket ([`message`]) and the
//! description of event classes ([`schema`]), also for whoever finds a program's memory later ([`class_table`]),
//! the conditions under which an event is recorded ([`filter`]), how trigger sites lie in a program ([`site`]), and what a pre-loaded library is told ([`locks`], [`functions`]).
//! Only layouts, numbers and their encoding live here, and what both sides must understand alike; the other
//! algorithms are in `ring`, `tracewing` and `session`.
//!
//! Whatever comes from the other side is hostile: decoders here take bytes and give values or an error, and the
//! shared words are atomics that their users copy once and bound-check.

#![no_std]
#![forbid(unsafe_code)]

pub mod atomic;
pub mod class_table;
pub mod event;
pub mod filter;
pub mod functions;
pub mod glob;
pub mod locks;
pub mod message;
pub mod region;
pub mod schema;
pub mod site;
pub mod wire;

pub use wire::WireError;

/// The environment variable that tells a program where its recorders listen: paths of Unix sockets with colons between
/// them, the newest recorder's first. A program joins the first 8 (`tracewing_ring::thread::RECORDINGS`).
///
/// Ignored in programs that run with raised privileges (`AT_SECURE`).
pub const SOCKET_VARIABLE: &str = "TRACEWING_SOCKET";
