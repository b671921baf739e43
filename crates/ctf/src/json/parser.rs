//! What the parser of CTF 2 metadata knows between fragments.

use std::collections::{HashMap, HashSet};

use crate::model::{FieldClass, TraceClass};

/// What is known from the fragments so far.
pub(super) struct Parser {
    pub(super) trace: TraceClass,
    pub(super) aliases: HashMap<String, Sized>,
    pub(super) has_trace_class: bool,
    /// Places of the data stream classes by id.
    pub(super) streams: HashMap<u64, usize>,
    /// Ids of event record classes by data stream class.
    pub(super) event_ids: HashSet<(u64, u64)>,
    /// Field classes that may still come.
    pub(super) budget: u64,
}

/// A field class, how many it consists of, and how deep they are nested.
#[derive(Clone)]
pub(super) struct Sized {
    pub(super) class: FieldClass,
    pub(super) nodes: u64,
    pub(super) depth: u32,
}

impl From<FieldClass> for Sized {
    fn from(class: FieldClass) -> Self {
        Sized { class, nodes: 1, depth: 1 }
    }
}

/// What a compound of field classes amounts to.
pub(super) struct Whole {
    nodes: u64,
    depth: u32,
}

impl Whole {
    pub(super) fn new() -> Self {
        Whole { nodes: 1, depth: 1 }
    }

    pub(super) fn add(&mut self, part: Sized) -> FieldClass {
        self.nodes = self.nodes.saturating_add(part.nodes);
        self.depth = self.depth.max(part.depth + 1);
        part.class
    }

    pub(super) fn of(self, class: impl Into<FieldClass>) -> Sized {
        Sized { class: class.into(), nodes: self.nodes, depth: self.depth }
    }
}
