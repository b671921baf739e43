//! Everything that two processes share in a recording, defined once: the buffer region in shared memory
//! ([`region`] and its [`children`]), the bytes of an event ([`event`]), the handshake over the recorder's
//! socket ([`message`]), how copies of tracewing in one process find each other's recorders ([`ways`]), the
//! description of event classes ([`schema`]), also as it is found in a program's memory ([`class_table`]),
//! how trigger sites lie in a program ([`site`]), how bytes that others write are passed on ([`shared`]), and
//! what a recorder passes to a pre-loaded library ([`locks`], [`functions`]).
//! Only layouts, numbers and their encoding live here; the algorithms are in `ring`, `rules`, `tracewing` and
//! `session`.
//!
//! Whatever comes from the other side is hostile: decoders here take bytes and give values or an error, and
//! the shared words are atomics that their users copy once and bound-check.

#![no_std]
#![forbid(unsafe_code)]
#![warn(unreachable_pub)]

pub mod atomic;
pub mod attach;
pub mod children;
pub mod class_table;
pub mod event;
pub mod first;
pub mod functions;
pub mod locks;
pub mod message;
pub mod region;
pub mod schema;
pub mod shared;
pub mod site;
pub mod ways;
pub mod wire;

pub use wire::{Malformed, WireError};

/// The environment variable that lists the sockets of a program's recorders: paths of Unix sockets with
/// colons between them, the newest recorder's first. A program joins the first 8
/// (`tracewing_ring::thread::RECORDINGS`).
///
/// Ignored in programs that run with raised privileges (`AT_SECURE`).
pub const SOCKET_VARIABLE: &str = "TRACEWING_SOCKET";
/// How many milliseconds a program waits for recorders in total before its `main`.
pub const WAIT_VARIABLE: &str = "TRACEWING_WAIT";
/// State of a program's joining: [`LATE`], [`LEFT_OUT`], or `0`, to which recorders set it. A program changes
/// the character in place.
pub const LATE_VARIABLE: &str = "TRACEWING_LATE";
/// A recorder has kept the program waiting for too long; programs that it executes do not wait again.
pub const LATE: u8 = b'1';
/// The program has not joined, since a filter for system calls was active from its start.
pub const LEFT_OUT: u8 = b'f';
/// Number of seccomp filters of the recorder itself, which programs inherit; not set if it has none.
pub const FILTERS_VARIABLE: &str = "TRACEWING_FILTERS";

/// In the folder of a user's running programs: lists the sockets of recorders that want all programs of the
/// user, in the form of [`SOCKET_VARIABLE`]. In [`ROOT_FOLDER`]: of recorders that want those of all users.
/// A program ignores it unless it is a regular file of its own user or root that others cannot write to.
pub const JOIN_FILE: &str = "tracewing/join";
/// Where root's programs have what they need while they run.
pub const ROOT_FOLDER: &str = "/run";
/// Has a folder for each user that is logged in, named by the user's number.
pub const USER_FOLDERS: &str = "/run/user";
/// The environment variable that names the user's folder if it is another one. Ignored in programs that run
/// with raised privileges.
pub const USER_FOLDER_VARIABLE: &str = "XDG_RUNTIME_DIR";
/// Largest [`JOIN_FILE`] that is read, bytes.
pub const LARGEST_JOIN_FILE: usize = 1024;

/// Name of the socket for questions ([`message::snapshot`]) and changes ([`message::control`]), in the folder
/// of the one by which programs join. Only the recorder's user and root can connect to it.
pub const CONTROL_SOCKET: &str = "control";
