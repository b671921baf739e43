//! Changes of a running recording that programs have yet to confirm, and why a change is not made.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use tracewing_abi::wire::WireError;
use tracewing_rules::TooManyRules;

use crate::connections::NotInvited;

/// Time that programs have to confirm a change.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);

/// What has changed since the recording began, and the connections that wait for a change.
pub(crate) struct Changes {
    /// The mask word, without the effect of pauses.
    pub(crate) majors: u64,
    pub(crate) is_paused: bool,
    pub(crate) waiting: Vec<Waiting>,
}

/// A connection that waits until a change is in force.
pub(crate) struct Waiting {
    /// The connection that asked for the change.
    pub(crate) asker: u64,
    pub(crate) until: Instant,
    /// Connections whose programs have not confirmed it yet.
    pub(crate) concerned: BTreeSet<u64>,
    pub(crate) notes: Vec<String>,
    pub(crate) failures: Vec<String>,
    /// Whether to answer with the rules.
    pub(crate) shows: bool,
}

impl Changes {
    pub(crate) fn new(majors: u64) -> Self {
        Self { majors, is_paused: false, waiting: Vec::new() }
    }

    /// The regions' mask word.
    pub(crate) fn mask(&self) -> u64 {
        if self.is_paused { 0 } else { self.majors }
    }

    /// When the first of those that wait has to be answered.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.waiting.iter().map(|waiting| waiting.until).min()
    }

    /// What was to be confirmed by connection `number` is now by connection `main`, of the same program.
    pub(crate) fn hand_over(&mut self, number: u64, main: u64) {
        for waiting in &mut self.waiting {
            if waiting.concerned.remove(&number) {
                waiting.concerned.insert(main);
            }
        }
    }
}

/// Why a recording is not changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotChanged {
    /// The bytes are not a message, or one of another version.
    #[error(transparent)]
    Message(#[from] WireError),
    #[error("the message has more than a rule")]
    Surplus,
    #[error("it records no programs, and events of the kernel, samples and probes cannot be paused")]
    NoPrograms,
    #[error(transparent)]
    Rules(#[from] TooManyRules),
    #[error(transparent)]
    Invitation(#[from] NotInvited),
}
