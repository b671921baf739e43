//! LTTng's log levels, which CTF 2 metadata has by name among an event record class's attributes.

/// The namespace of LTTng's attributes.
pub(crate) const NAMESPACE: &str = "lttng.org,2009";

const NAMES: [&str; 15] = [
    "emergency",
    "alert",
    "critical",
    "error",
    "warning",
    "notice",
    "info",
    "debug:system",
    "debug:program",
    "debug:process",
    "debug:module",
    "debug:unit",
    "debug:function",
    "debug:line",
    "debug",
];

/// The name of a level.
pub(crate) fn name(level: i64) -> Option<&'static str> {
    NAMES.get(usize::try_from(level).ok()?).copied()
}

/// The level of this name.
#[cfg(feature = "read")]
pub(crate) fn number(name: &str) -> Option<i64> {
    NAMES.iter().position(|known| *known == name).map(|level| level as i64)
}
