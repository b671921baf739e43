//! Drains the ring buffers of a region into a CTF trace: whole sub-buffers go to the stream file with one
//! system call, between a packet header and an entry in the packet index.
//!
//! The same code serves a recorder (crate `session`) and a program that records itself
//! (`tracewing::Session`).
//!
//! | module | does |
//! |---|---|
//! | [`clock`] | chooses the recording's clock, finds its frequency, calibrates it against real time |
//! | [`cpus`] | how many CPUs need buffers |
//! | [`memory`] | the shared memory that a region lies in |
//! | `shortened` | survives the shortening of a region's file |
//! | [`identity`] | random identities |
//! | [`classes`] | gives event classes their ids |
//! | [`metadata`] | describes them in the metadata |
//! | `streams` | stream files, each continued by one region after another |
//! | `writer`, `output` | a queue to the disk and the thread that empties it; or direct output |
//! | [`archive`] | what a rotation has closed |
//! | `ids` | sets of event classes |
//! | `buffer` | one CPU buffer: chunks become packets, losses become ranges of time |
//! | [`outside`] | the numbers of threads of programs of other PID namespaces |
//! | `children` | where children of a program without buffers count their losses |
//! | [`trace`] | the streams of all regions, one after another |
//! | [`summary`] | totals and losses of streams |
//! | [`drain`] | all buffers of one region: writes what is due, records losses with their times |
//! | [`pace`] | when to look at the buffers |
//! | [`folder`] | the trace folder |
//! | [`description`] | its `tracewing.json` |
//! | [`survival`] | buffers in files, which survive program and recorder |
//! | [`snapshot`] | a trace folder with the content of a flight recorder's buffers |
//!
//! The crate does not read payloads, and uses no sockets and no other processes. It starts at most one
//! thread, on request, which waits for the disk in place of the caller's thread.

#![warn(unreachable_pub)]

pub mod archive;
mod buffer;
mod children;
pub mod classes;
pub mod clock;
pub mod cpus;
pub mod description;
pub mod drain;
mod error;
pub mod firsts;
pub mod folder;
pub mod identity;
mod ids;
mod mapping;
pub mod memory;
pub mod metadata;
pub mod names;
mod output;
pub mod outside;
pub mod pace;
mod packet_events;
mod shortened;
pub mod snapshot;
mod streams;
pub mod summary;
pub mod survival;
pub mod trace;
mod whole_events;
mod writer;

pub use error::{Error, NoTsc};
