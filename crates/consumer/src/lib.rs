//! Drains the ring buffers of a region into a CTF trace: whole sub-buffers go to the stream file with one
//! system call, between a packet header and an entry in the packet index.
//!
//! The same code serves a recorder (crate `session`) and a program that records itself
//! (`tracewing::Session`).
//!
//! | module | does |
//! |---|---|
//! | [`clock`] | chooses the recording's clock, finds its frequency, calibrates it against real time |
//! | [`memory`] | the shared memory that a region lies in |
//! | `shortened` | survives that a region's file is shortened |
//! | [`identity`] | random identities |
//! | [`classes`] | gives event classes their ids and describes them in the metadata |
//! | `streams` | stream files that one region after another continues |
//! | `writer`, `output` | a queue in front of the disk, and the thread that empties it; or straight to the file |
//! | `met` | of which event classes there was an event |
//! | `buffer` | one CPU buffer: chunks become packets, losses become ranges of time |
//! | [`outside`] | the numbers of threads of programs of other PID namespaces |
//! | `children` | where children of a program count losses that have none of its buffers |
//! | [`trace`] | the streams of all regions, one after another |
//! | [`summary`] | what streams amount to, and what was lost of them |
//! | [`drain`] | all buffers of one region: what is due is written, what was lost is noted with its time |
//! | [`pace`] | when to look at the buffers |
//! | [`folder`] | the trace folder and its `tracewing.json` |
//! | [`survival`] | buffers in files, for the case that program and recorder die |
//! | [`snapshot`] | a trace folder of what a flight recorder's buffers hold |
//!
//! It knows no payloads, no sockets and no other processes. The one thread that it starts, where asked, waits
//! for the disk in place of its user's.

mod buffer;
mod children;
pub mod classes;
pub mod clock;
pub mod drain;
mod error;
pub mod firsts;
pub mod folder;
pub mod identity;
mod mapping;
pub mod memory;
mod met;
pub mod names;
mod output;
pub mod outside;
pub mod pace;
mod shortened;
pub mod snapshot;
mod streams;
pub mod summary;
pub mod survival;
pub mod trace;
mod whole_events;
mod writer;

pub use error::Error;
