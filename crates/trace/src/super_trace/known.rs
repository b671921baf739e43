//! What a reader of a recording knows of earlier events besides the state.

use super::serial::LwpSerial;
use crate::stream::cursor::Lost;
use tracewing_units::{Pid, Task, Tid, Timestamp};

/// What a reader knows at a pause besides the state.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Known {
    /// Events so far.
    pub events: u64,
    /// The latest stamp of an event so far.
    pub latest: Timestamp,
    /// Whether any event was older than one before it.
    pub went_back: bool,
    /// Until then, events of programs are missing that were reported as lost.
    pub blind_until: Option<Timestamp>,
    /// The same with those that buffers overwrote before a snapshot was taken.
    pub unseen_until: Option<Timestamp>,
    /// Losses so far that last until the pause or longer, each with its stream's place in
    /// [`Recording::streams`](crate::Recording::streams).
    pub losses: Vec<(Lost, usize)>,
    /// Names that state dumps gave the first threads of processes: of each, the first and the last name.
    pub dumped: Vec<(Tid, Pid, Box<[u8]>)>,
    /// Names of processes as they were when these last recorded something, where there is room for them.
    pub named: Option<Vec<(Pid, String)>>,
    /// The user threads that LWPs ran when these last recorded something: process, number and name.
    pub carried: Vec<(LwpSerial, (Option<Pid>, Task), String)>,
    /// The names of all events so far, each with their number, where there is room for them.
    pub counted: Option<Vec<(String, u64)>>,
    /// What analyses know.
    pub parts: Vec<Part>,
}

/// What analyses of one kind know of earlier events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Which kind.
    pub kind: u8,
    /// Their own form.
    pub bytes: Box<[u8]>,
}
