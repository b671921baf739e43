//! Names in recordings of earlier versions that have changed since. Readers replace them when they open a
//! recording; nothing writes them.
//!
//! An event class or a field that is renamed gets its earlier name in its declaration: a second name of the
//! class, or `also` of the field.

use alloc::borrow::ToOwned;
use alloc::string::String;

use crate::environment as env;

/// Keys of the [environment](crate::environment): the earlier name and the present one.
const ENVIRONMENT: &[(&str, &str)] = &[
    ("part_begin", env::EXTRACT_BEGIN),
    ("part_end", env::EXTRACT_END),
    ("part_switches", env::EXTRACT_SWITCHES),
    ("part_system_calls", env::EXTRACT_SYSTEM_CALLS),
    ("part_interrupts", env::EXTRACT_INTERRUPTS),
    ("part_left_out", env::EXTRACT_LEFT_OUT),
    ("part_tasks", env::EXTRACT_TASKS),
    ("part_lwps", env::EXTRACT_LWPS),
    ("part_tids", env::EXTRACT_TIDS),
    ("part_cpus", env::EXTRACT_CPUS),
];

/// Members of `tracewing.json`: the member that holds the object (empty: the document), the earlier name and
/// the present one.
const DESCRIPTION: &[(&str, &str, &str)] = &[
    ("", "asked_for", "options"),
    ("clock", "frequency", "frequency_hz"),
    ("clock", "stopped", "stopped_cycles"),
    ("changes", "time", "time_cycles"),
    ("changes", "what", "change"),
    ("processes", "joined", "joined_cycles"),
    ("user_streams", "lost", "lost_events"),
    ("user_streams", "begin", "begin_cycles"),
    ("kernel_streams", "lost", "lost_events"),
    ("kernel_streams", "begin", "begin_cycles"),
    ("profile_streams", "lost", "lost_events"),
    ("profile_streams", "begin", "begin_cycles"),
    ("losses", "begin", "begin_cycles"),
    ("losses", "end", "end_cycles"),
    ("overwritten", "begin", "begin_cycles"),
    ("overwritten", "end", "end_cycles"),
    ("snapshot", "taken", "taken_cycles"),
];

/// The present name of an environment key; `None` if `key` has not been renamed. The number at the end of
/// repeated keys (`part_tasks_2`) is kept.
pub fn environment_key(key: &str) -> Option<String> {
    let is_number = |rest: &str| {
        let digits = rest.strip_prefix('_');
        rest.is_empty()
            || digits.is_some_and(|of| !of.is_empty() && of.bytes().all(|byte| byte.is_ascii_digit()))
    };
    ENVIRONMENT.iter().find_map(|(earlier, present)| {
        let rest = key.strip_prefix(earlier).filter(|rest| is_number(rest))?;
        Some((*present).to_owned() + rest)
    })
}

/// The members of `tracewing.json` that have been renamed in objects in the member `of`: the earlier name and
/// the present one.
pub fn description_keys(of: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    DESCRIPTION
        .iter()
        .filter(move |(member, ..)| *member == of)
        .map(|&(_, earlier, present)| (earlier, present))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_earlier_names_are_replaced() {
        assert_eq!(environment_key("part_tasks_2").as_deref(), Some("extract_tasks_2"));
        assert_eq!(environment_key("part_begin").as_deref(), Some("extract_begin_ns"));
        for key in ["part_", "part_tasks_", "part_tasks_x", "part_time", "extract_begin_ns", "domain"] {
            assert_eq!(environment_key(key), None, "{key}");
        }
        assert!(description_keys("clock").any(|keys| keys == ("frequency", "frequency_hz")));
        assert_eq!(description_keys("host").count(), 0);
    }

    #[test]
    fn present_names_are_those_in_use() {
        for (_, present) in ENVIRONMENT {
            assert!(env::KEYS.contains(present), "{present}");
        }
    }
}
