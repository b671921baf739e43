//! Why a question does not fit a recording.

use tracewing_trace::{Error, NoEvent, UsageFault, Variable};

/// Why a question does not fit a recording. The cause of [`UsageFault::Analysis`].
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum QuestionFault {
    /// The recording has no event of a name.
    #[error(transparent)]
    NoEvent(NoEvent),
    /// No event of a name has what it is to be matched by.
    #[error("no event called `{0}` has `{1}` to match it by")]
    NoMatch(String, Variable),
    /// No event of a name has what it is to be grouped by.
    #[error("no event called `{0}` has `{1}` to group by")]
    NoGroup(String, Variable),
}

impl From<QuestionFault> for Error {
    fn from(fault: QuestionFault) -> Self {
        UsageFault::Analysis(Box::new(fault)).into()
    }
}
