//! A program that has joined: its classes, and what it has been sent of them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::mem::replace;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use tracewing_abi::message::ask::Taken;
use tracewing_abi::message::grant::{Done, Grant, GrantsWriter};
use tracewing_abi::message::late::Late;
use tracewing_abi::message::{Joining, MAX_MESSAGE, decode_classes};
use tracewing_units::Timestamp;

use super::host::Host;
use crate::credentials::Peer;
use crate::program::Program;

/// A program that has joined, or more of its classes.
pub(crate) struct Member {
    pub(crate) program: Program,
    /// [`Hello::copy`].
    pub(crate) copy: u64,
    pub(crate) joining: Joining,
    /// Its classes, and whether they were on in the last message to it.
    pub(crate) classes: BTreeMap<u16, bool>,
    /// Classes that it has described and has had no answer for, in their order.
    pub(super) due: VecDeque<u16>,
    /// Classes whose rules have changed since the last message to it.
    pub(crate) unconfirmed: BTreeSet<u16>,
    /// The number of its last change, and whether it has yet to be answered.
    pub(super) change: u32,
    pub(super) is_asked: bool,
    /// Sites that it could not switch in the last change that went wrong, and why not.
    pub(crate) failure: Option<(u32, String)>,
    /// When it was last asked for classes that it has made.
    pub(crate) asked: Option<Instant>,
    /// Since when nothing is known of its events, where this recorder was too late. A time of day.
    pub(crate) unknown_since: Option<Timestamp>,
    /// When it began to join, and until when it waited for that: times of day.
    pub(super) since: Timestamp,
    pub(super) until: Timestamp,
}

/// A message, and what it says.
pub(super) struct Grants {
    pub(super) message: Vec<u8>,
    pub(super) sent: Vec<(u16, bool)>,
    pub(super) is_change: bool,
}

impl Member {
    /// Whether its program continued before it had received everything.
    pub(super) fn is_late(&self) -> bool {
        self.joining == Joining::Program && self.until < time_of_day() && self.classes.is_empty()
    }

    /// Whether it has joined as a program does at first, and described no class.
    pub(crate) fn has_no_classes(&self) -> bool {
        self.joining == Joining::Program && self.classes.is_empty() && self.due.is_empty()
    }

    /// Whether it has confirmed what the current rules make of its classes.
    pub(crate) fn is_settled(&self) -> bool {
        self.unconfirmed.is_empty() && !self.is_asked
    }

    /// Handles a message from a program that has joined. `None` if the message is invalid.
    pub(super) fn take(&mut self, host: &mut dyn Host, peer: Peer, message: &[u8]) -> Option<()> {
        if let Ok(done) = Done::decode(message) {
            if !replace(&mut self.is_asked, false) || done.number != self.change {
                return None;
            }
            if done.failed > 0 {
                self.failure = Some((done.failed, done.why.to_owned()));
            }
            return Some(());
        }
        if let Ok(late) = Late::decode(message) {
            self.unknown_since = None;
            host.missed(peer, &self.program, reported(late.from), Some(reported(late.to)));
            return Some(());
        }
        if Taken::decode(message).is_some() {
            host.taken(peer);
            return Some(());
        }
        let descriptions: Vec<&[u8]> = decode_classes(message).ok()?.collect::<Result<_, _>>().ok()?;
        self.due = host.describe(peer, &descriptions).into();
        Some(())
    }

    /// The next message that is due, if there is one.
    pub(super) fn grants(&self, host: &mut dyn Host) -> Option<Option<Grants>> {
        let is_change = self.due.is_empty();
        // A connection that brings more classes gets no changes: its program's first connection does, once
        // this one ends.
        let may_send = !self.joining.is_passing() && !self.is_asked && !self.unconfirmed.is_empty();
        if is_change && !may_send {
            return Some(None);
        }
        let mut message = vec![0; MAX_MESSAGE];
        let mut writer = if is_change {
            GrantsWriter::change(&mut message, self.change.wrapping_add(1)).ok()?
        } else {
            GrantsWriter::grants(&mut message).ok()?
        };
        let ids: Vec<u16> = if is_change {
            self.unconfirmed.iter().copied().collect()
        } else {
            self.due.iter().copied().collect()
        };
        let decided = host.decide(&self.program, &ids)?;
        let mut sent = Vec::new();
        for (&id, decided) in ids.iter().zip(&decided) {
            if writer.push(Grant { id, on: decided.on, filter: &decided.filter }).is_err() {
                break;
            }
            sent.push((id, decided.on));
        }
        let len = writer.finish().len();
        message.truncate(len);
        Some(Some(Grants { message, sent, is_change }))
    }

    pub(super) fn mark_sent(&mut self, grants: Grants) {
        for (id, on) in grants.sent {
            if grants.is_change {
                self.unconfirmed.remove(&id);
            } else {
                self.due.pop_front();
            }
            if id != 0 {
                self.classes.insert(id, on);
            }
        }
        if grants.is_change {
            self.change = self.change.wrapping_add(1);
            self.is_asked = true;
        }
    }
}

/// The time of day.
pub(crate) fn time_of_day() -> Timestamp {
    reported(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64))
}

/// A time of day that a program reports, in nanoseconds since 1970. It may be any number.
pub(super) fn reported(ns: u64) -> Timestamp {
    Timestamp::from_ns(ns.try_into().unwrap_or(i64::MAX))
}
