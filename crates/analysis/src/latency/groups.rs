//! Durations by what the ends of their periods have in common.

use super::Distribution;
use super::durations::Durations;
use serde::Serialize;
use std::collections::HashMap;
use tracewing_trace::super_trace::Seen;
use tracewing_trace::{Glob, Keys, Recording, Variable};
use tracewing_units::Duration;

/// Maximum number of groups. Periods of further ones are one group.
const MOST: usize = 1024;

/// Maximum number of durations that a group keeps; quantiles of more come from a histogram.
const KEPT: usize = 1 << 12;

/// Periods whose ends have something in common.
#[derive(Debug, Default, Clone, PartialEq, Serialize)]
pub struct Group {
    /// Variables of the end, and their values; empty where an end lacks one of them.
    pub group: Vec<(String, String)>,
    /// How long the periods are.
    #[serde(flatten)]
    pub distribution: Distribution,
}

/// Groups as they come.
#[derive(Debug)]
pub(super) struct Groups {
    keys: Keys,
    is_asked: bool,
    sums: HashMap<Vec<u8>, Durations>,
    others: Durations,
    key: Vec<u8>,
}

impl Groups {
    /// Groups by these variables of the ends, or with `at_next` of the place that they lead to.
    pub(super) fn new(by: &[Variable], at_next: bool) -> Self {
        let keys = Keys::new(by.to_vec());
        let keys = if at_next { keys.derived() } else { keys };
        let (sums, others, key) = (HashMap::new(), Durations::keeping(KEPT), Vec::new());
        Groups { keys, is_asked: !by.is_empty(), sums, others, key }
    }

    /// A variable that no end has.
    pub(super) fn missing(&self, recording: &Recording, ends: &Glob) -> Option<&Variable> {
        self.keys.missing(recording, |name| ends.matches(name)).first().copied()
    }

    /// A period of `ns` nanoseconds has ended.
    pub(super) fn add(&mut self, end: &Seen<'_>, ns: Duration) {
        if !self.is_asked {
            return;
        }
        self.key.clear();
        if !self.keys.read(end, &mut self.key) {
            self.key.clear();
        }
        let full = self.sums.len() >= MOST;
        match self.sums.get_mut(&self.key) {
            Some(durations) => durations.add(ns),
            None if full => self.others.add(ns),
            None => {
                let mut durations = Durations::keeping(KEPT);
                durations.add(ns);
                self.sums.insert(self.key.clone(), durations);
            }
        }
    }

    /// Groups by total time, the longest first; the one that combines all beyond the limit comes last.
    pub(super) fn finish(self) -> Vec<Group> {
        let Groups { keys, sums, others, .. } = self;
        let group = |(key, durations): (Vec<u8>, Durations)| Group {
            group: keys.shown(&key),
            distribution: durations.finish(),
        };
        let mut groups: Vec<_> = sums.into_iter().map(group).collect();
        let total = |group: &Group| group.distribution.mean_ns * group.distribution.count as f64;
        groups.sort_by(|a, b| total(b).total_cmp(&total(a)).then_with(|| a.group.cmp(&b.group)));
        let others = others.finish();
        if others.count > 0 {
            groups.push(Group { group: vec![("others".to_owned(), String::new())], distribution: others });
        }
        groups
    }
}
