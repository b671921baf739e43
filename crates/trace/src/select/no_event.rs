//! What to say of a pattern that matches no event class of a recording.

use crate::open::recording::Recording;
use tracewing_rules::{Glob, closest};

/// A pattern matches the name of no event class.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoEvent {
    /// But a name is much like it.
    #[error("no event is called `{pattern}`; is `{meant}` meant?")]
    Misspelt {
        /// As it was given.
        pattern: String,
        /// The name that is most like it.
        meant: String,
    },
    /// And no name is much like it.
    #[error("no event is called `{0}`; `tracewing info` lists the events of a recording")]
    Unknown(String),
}

impl Recording {
    /// The names of all event classes.
    fn event_names(&self) -> impl Iterator<Item = &str> {
        let streams = self.traces().iter().flat_map(|trace| &trace.class().data_stream_classes);
        streams.flat_map(|stream| &stream.event_record_classes).filter_map(|class| class.name.as_deref())
    }

    /// Whether `pattern` matches the name of an event class.
    pub fn has_event(&self, pattern: &str) -> bool {
        let glob = Glob::new(pattern);
        self.event_names().any(|name| glob.matches(name))
    }

    /// Describes a pattern that matches none.
    pub fn no_event(&self, pattern: &str) -> NoEvent {
        let pattern = pattern.to_owned();
        match closest(&pattern, self.event_names()) {
            Some(meant) => NoEvent::Misspelt { pattern, meant },
            None => NoEvent::Unknown(pattern),
        }
    }
}
