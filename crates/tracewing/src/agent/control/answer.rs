//! What recordings answer to classes, and what comes of it.

use core::fmt;
use std::sync::Arc;

use tracewing_abi::message::grant::Grant;
use tracewing_trigger::{Guard, Obstacle, SwitchError};

use crate::agent::system;
use crate::class::EventClass;

/// A [`Grant`] of its own.
#[derive(Debug, Clone)]
pub(crate) struct Granted {
    pub(crate) id: u16,
    pub(crate) on: bool,
    pub(crate) filter: Vec<u8>,
}

impl From<Grant<'_>> for Granted {
    fn from(grant: Grant<'_>) -> Self {
        Self { id: grant.id, on: grant.on, filter: grant.filter.to_vec() }
    }
}

/// Sends classes to a recording.
pub(crate) type Registrar = Arc<dyn Fn(&[&'static EventClass]) -> Answer + Send + Sync>;

/// A recording's answer to classes.
#[derive(Default)]
pub(crate) struct Answer {
    /// A grant for each, in their order, or fewer where the recording is gone.
    pub(crate) grants: Vec<Granted>,
    /// Dropped when the grants are in force: the recorder takes its end for that.
    pub(crate) connection: Option<system::Fd>,
    /// Dropped then, too: what a session decides later is put into force later.
    pub(crate) turn: Option<Guard<'static>>,
    /// Set instead of all that where the recorder was not in time: gives its answer, however long that takes.
    pub(crate) rest: Option<Box<dyn FnOnce() -> Answer + Send>>,
}

/// What is left to do of a conversation when the caller does not wait any longer: for another thread.
pub(crate) type Rest = Box<dyn FnOnce() + Send>;

impl From<Vec<Granted>> for Answer {
    fn from(grants: Vec<Granted>) -> Self {
        Self { grants, ..Self::default() }
    }
}

/// What became of a change.
#[derive(Debug, Default)]
pub(crate) struct Changed {
    /// Sites that could not be switched.
    pub(crate) failed: usize,
    /// Why the first of these could not.
    pub(crate) why: Option<SwitchFault>,
    /// Whether a class is off now whose first events were taken.
    pub(crate) is_off: bool,
}

/// Why instrumentation points could not be switched on or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SwitchFault {
    /// The program takes part in recordings with so many conditions that there is no room for another one.
    NoRoom,
    /// Something else, such as a uprobe, is in the place of the instruction.
    Obstacle(Obstacle),
    /// The kernel does not let the program change its code.
    Refused(SwitchError),
}

impl fmt::Display for SwitchFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRoom => f.write_str("no room for its filter"),
            Self::Obstacle(obstacle) => obstacle.fmt(f),
            Self::Refused(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for SwitchFault {}
