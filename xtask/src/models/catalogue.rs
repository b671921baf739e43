//! The runs of the models: which variant, and how it must end. docs/models.md explains them.

/// How a run must end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// No error in the whole state space.
    Proof,
    /// No error, and no cycle in the state space: every run of the model ends.
    Ends,
    /// A seeded fault: this property is violated.
    Fault(&'static str),
    /// As `Fault`; the shortest interleaving is looked for, and shown.
    Race(&'static str),
}

/// A variant of a model.
#[derive(Debug)]
pub struct Run {
    /// File name without `.pml`.
    pub model: &'static str,
    /// What is special about the variant.
    pub name: &'static str,
    /// Preprocessor definitions that make it.
    pub defines: &'static [&'static str],
    /// How it must end.
    pub expected: Expected,
    /// Whether it is part of the quick form.
    pub quick: bool,
}

use Expected::{Ends, Fault, Proof, Race};

const fn quick(
    model: &'static str,
    name: &'static str,
    defines: &'static [&'static str],
    expected: Expected,
) -> Run {
    Run { model, name, defines, expected, quick: true }
}

const fn long(
    model: &'static str,
    name: &'static str,
    defines: &'static [&'static str],
    expected: Expected,
) -> Run {
    Run { model, name, defines, expected, quick: false }
}

const COMPLETE: &str = "no event is read before it is complete";
const ORDER: &str = "each event is read once and in order";

/// All runs. The long ones come first, so that two at a time end together.
pub const RUNS: &[Run] = &[
    long("publish", "overwrite", &["OVERWRITE"], Proof),
    quick("publish", "discard", &[], Proof),
    long("publish", "discard, bounded: every run ends", &["BOUND", "EMITS=2", "DEATHS=1"], Ends),
    quick("publish", "fault: no restart", &["FAULT_ABORT"], Fault(ORDER)),
    quick("publish", "fault: commit before data", &["FAULT_COMMIT_FIRST"], Fault(COMPLETE)),
    // K42
    quick("k42", "counters as in 002, section 2", &[], Race(COMPLETE)),
    quick("k42", "counts zeroed, as in 004, section 3.1", &["ZEROED"], Race(COMPLETE)),
    quick("k42", "contexts do not interrupt each other", &["ALONE"], Proof),
    quick("k42", "the same, counts zeroed", &["ALONE", "ZEROED"], Proof),
];
