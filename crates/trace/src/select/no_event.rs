//! What to say of a pattern that matches no event class of a recording.

use crate::open::recording::Recording;
use tracewing_rules::Glob;

/// Similarity (Jaro-Winkler, 0 to 1) from which a name is probably a misspelt one.
const ALIKE: f64 = 0.85;

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

/// The name that is most like a pattern, whole or without its provider.
fn closest<'n>(pattern: &str, names: impl Iterator<Item = &'n str>) -> Option<String> {
    let alike = |name: &str| strsim::jaro_winkler(&name.to_lowercase(), &pattern.to_lowercase());
    let rated = names.map(|name| {
        let short = name.rsplit(':').next().unwrap_or(name);
        (alike(name).max(alike(short)), name)
    });
    let (rate, name) = rated.max_by(|(a, first), (b, second)| a.total_cmp(b).then(second.cmp(first)))?;
    (rate >= ALIKE).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::closest;

    #[test]
    fn misspelt_names_are_found() {
        let meant = |pattern| {
            let names = ["sched_switch", "shop:served", "shop:answered", "syscall_entry_futex"];
            closest(pattern, names.into_iter())
        };
        for (pattern, name) in [
            ("sched_swich", "sched_switch"),
            ("served", "shop:served"),
            ("Shop:Anwsered", "shop:answered"),
            ("futex", ""),
            ("block_rq_issue", ""),
            ("", ""),
        ] {
            assert_eq!(meant(pattern).as_deref().unwrap_or_default(), name, "{pattern}");
        }
        assert_eq!(closest("anything", std::iter::empty()), None);
    }
}
