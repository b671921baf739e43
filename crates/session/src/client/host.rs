//! What connections ask of the recorder.

use std::os::fd::OwnedFd;

use tracewing_abi::message::{Answer, Hello};
use tracewing_units::Timestamp;

use crate::credentials::Peer;
use crate::program::Program;

/// What a program may ask for.
pub(crate) trait Host {
    /// What to answer a program that says hello, with buffers where it needs some. `None` if it cannot be
    /// recorded.
    fn join(&mut self, peer: Peer, hello: &Hello) -> Option<(Vec<OwnedFd>, Answer)>;
    /// The program has got that answer.
    fn joined(&mut self, peer: Peer, hello: &Hello);
    /// Nothing is known of its events between two times of day; without the second one, until now.
    fn missed(&mut self, peer: Peer, program: &Program, from: Timestamp, to: Option<Timestamp>);
    /// A child has taken over the buffers that the program had for it.
    fn taken(&mut self, peer: Peer);
    /// Ids for class descriptions, one each; 0 where a class is not taken.
    fn describe(&mut self, peer: Peer, descriptions: &[&[u8]]) -> Vec<u16>;
    /// What the current rules make of each of these classes in a program. `None` if the recording cannot
    /// continue.
    fn decide(&mut self, program: &Program, ids: &[u16]) -> Option<Vec<Decided>>;
}

/// What becomes of the events of a class.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Decided {
    pub on: bool,
    /// As [`Grant::filter`].
    pub filter: Box<[u8]>,
}
