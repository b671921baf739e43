//! Everything that two processes share in a recording, defined once: the buffer region in shared memory
//! ([`region`]), the bytes of an event ([`event`]), the handshake over the recorder's socket ([`message`]) and the
//! description of event classes ([`schema`]), also for whoever finds a program's memory later ([`class_table`]). Only layouts, numbers and their encoding live here; the algorithms on
//! them are in `ring`, `tracewing` and `session`.
//!
//! Whatever comes from the other side is hostile: decoders here take bytes and give values or an error, and the
//! shared words are atomics that their users copy once and bound-check.

#![no_std]
#![forbid(unsafe_code)]

pub mod atomic;
pub mod class_table;
pub mod event;
pub mod message;
pub mod region;
pub mod schema;
mod wire;

pub use wire::WireError;

/// The environment variable that tells a program where its recorder listens: the path of a Unix socket.
///
/// Ignored in programs that run with raised privileges (`AT_SECURE`).
pub const SOCKET_VARIABLE: &str = "TRACEWING_SOCKET";
