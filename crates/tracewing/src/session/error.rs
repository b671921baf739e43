//! Why a program could not record itself.

use tracewing_rules::TooManyRules;

use crate::agent::{self, SwitchFault};

/// Why a program could not record itself, or not to the end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// As many recordings as can see a program see it already; or the system has no memory for what the
    /// program needs to take part.
    #[error("this program takes part in eight recordings already, or has no memory for one more")]
    CannotTakePart,
    /// Sites could not be switched on or off: the kernel does not let the program change its code, or a
    /// uprobe is on them. The others were.
    #[error("{failed} instrumentation points could not be switched: {why}")]
    NotSwitched {
        /// Number of sites that were not switched.
        failed: usize,
        /// Why the first could not.
        why: SwitchFault,
    },
    /// The folder, the clock or the buffers.
    #[error(transparent)]
    Recording(#[from] tracewing_consumer::Error),
    /// The system refuses what every program needs.
    #[error("cannot {action}: {source}")]
    System {
        /// What was tried, in the words of the message.
        action: &'static str,
        /// The error that the system returned.
        source: std::io::Error,
    },
    /// A snapshot was asked of a session that writes everything anyway, or has ended.
    #[error("the session is no flight recorder; begin it with `SessionBuilder::flight_recorder`")]
    NotFlightRecorder,
    /// The session has as many rules as it can have.
    #[error(transparent)]
    Rules(#[from] TooManyRules),
    /// The session was begun by the process that this one was forked from, and continues there.
    #[error("the session belongs to the parent process")]
    OfParent,
}

pub(super) fn switched(changed: agent::Changed) -> Result<(), SessionError> {
    match changed.why {
        Some(why) => Err(SessionError::NotSwitched { failed: changed.failed, why }),
        None => Ok(()),
    }
}
