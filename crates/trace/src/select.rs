//! Which events a user wants to see: by name.

use crate::glob::Glob;
use crate::merge::EventRef;
use std::collections::HashMap;

/// Chooses events by name; asks each pattern once per event class.
#[derive(Debug, Default)]
pub struct Selection {
    globs: Vec<Glob>,
    /// By trace, data stream class id and event class id.
    known: HashMap<(usize, u64, u64), bool>,
}

impl Selection {
    /// Chooses the events whose names match one of `patterns`; all of them where there is no pattern.
    pub fn new<S: AsRef<str>>(patterns: &[S]) -> Self {
        Selection {
            globs: patterns.iter().map(|pattern| Glob::new(pattern.as_ref())).collect(),
            known: HashMap::new(),
        }
    }

    /// Whether `event` is wanted.
    pub fn wants(&mut self, event: &EventRef<'_>) -> bool {
        if self.globs.is_empty() {
            return true;
        }
        let class = event.decoded().class();
        let key = (event.trace_index(), event.stream().class_id(), class.id);
        let globs = &self.globs;
        *self.known.entry(key).or_insert_with(|| {
            class.name.as_deref().is_some_and(|name| globs.iter().any(|glob| glob.matches(name)))
        })
    }
}
