//! The runs of the models: which variant, and how it must end. docs/explanation/models.md explains them.

/// How a run must end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// No error in the whole state space.
    Proof,
    /// No error, and no cycle in the state space: every run of the model ends.
    Ends,
    /// A seeded fault: this property is violated.
    Fault(&'static str),
    /// A seeded fault: there is a cycle, so some run does not end.
    Endless,
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
    /// Whether it has millions of states.
    pub is_big: bool,
}

use Expected::{Endless, Ends, Fault, Proof, Race};

const fn quick(
    model: &'static str,
    name: &'static str,
    defines: &'static [&'static str],
    expected: Expected,
) -> Run {
    Run { model, name, defines, expected, quick: true, is_big: false }
}

const fn long(
    model: &'static str,
    name: &'static str,
    defines: &'static [&'static str],
    expected: Expected,
) -> Run {
    Run { model, name, defines, expected, quick: false, is_big: false }
}

const fn big(
    model: &'static str,
    name: &'static str,
    defines: &'static [&'static str],
    expected: Expected,
) -> Run {
    Run { model, name, defines, expected, quick: false, is_big: true }
}

const COMPLETE: &str = "no event is read before it is complete";
const STAMPS: &str = "order and time stamps are kept";
const TOTAL: &str = "a sub-buffer says how much was written before it";
const USED: &str = "a closed sub-buffer says how much it holds";
const NUMBER: &str = "a sub-buffer is the one that was looked for";
const COUNTED: &str = "no event is lost uncounted";
const ONE_SLOT: &str = "two writers never have one slot";
const UNFINISHED: &str = "a sub-buffer is left unfinished only by writers that were killed";
const WRITTEN: &str = "what is read is what was written for it";
const MAPPED: &str = "the buffers are used only while they are mapped";

/// All runs. The long ones come first, so that two at a time end together.
pub const RUNS: &[Run] = &[
    // Protocol Publish.
    big("publish", "overwrite", &["OVERWRITE"], Proof),
    long("publish", "overwrite, a killed thread", &["OVERWRITE", "EMITS=2", "DEATHS=1"], Proof),
    big("publish", "overwrite, 2 CPUs", &["OVERWRITE", "CPUS=2", "EMITS=2", "FEWER=1"], Proof),
    long("publish", "overwrite, 3 snapshots", &["OVERWRITE", "SNAPSHOTS=3", "EMITS=2"], Proof),
    long("publish", "overwrite, bounded: every run ends", &["OVERWRITE", "BOUND", "EMITS=2"], Ends),
    long("publish", "discard, 2 killed threads", &["DEATHS=2"], Proof),
    big("publish", "discard, 2 CPUs", &["CPUS=2", "EMITS=2", "FEWER=1"], Proof),
    long("publish", "discard, bounded: every run ends", &["BOUND", "EMITS=2", "DEATHS=1"], Ends),
    quick("publish", "discard", &[], Proof),
    quick("publish", "overwrite, short", &["OVERWRITE", "EMITS=2"], Proof),
    quick("publish", "fault: no restart", &["FAULT_ABORT"], Fault(TOTAL)),
    quick("publish", "fault: commit before data", &["FAULT_COMMIT_FIRST"], Fault(COMPLETE)),
    long("publish", "fault: exact fit", &["FAULT_FIT"], Fault(TOTAL)),
    long(
        "publish",
        "fault: no check of the CPU",
        &["FAULT_CPU", "CPUS=2", "EMITS=2", "FEWER=1"],
        Fault(USED),
    ),
    long("publish", "fault: no check of head", &["FAULT_HEAD"], Fault(TOTAL)),
    long("publish", "fault: no check for room", &["FAULT_FULL"], Fault(TOTAL)),
    long("publish", "fault: a loss not counted", &["FAULT_COUNT"], Fault(COUNTED)),
    long("publish", "fault: released before it is read", &["FAULT_RELEASE_FIRST"], Fault(TOTAL)),
    long("publish", "fault: no bound", &["EMITS=2"], Endless),
    long("publish", "fault: overwrite, no restart", &["OVERWRITE", "FAULT_ABORT"], Fault(TOTAL)),
    long("publish", "fault: overwrite, exact fit", &["OVERWRITE", "FAULT_FIT"], Fault(TOTAL)),
    long(
        "publish",
        "fault: overwrite, no check of the CPU",
        &["OVERWRITE", "FAULT_CPU", "CPUS=2", "EMITS=2", "FEWER=1"],
        Fault(USED),
    ),
    long("publish", "fault: overwrite, no check of head", &["OVERWRITE", "FAULT_HEAD"], Fault(TOTAL)),
    long("publish", "fault: no claim", &["OVERWRITE", "FAULT_CLAIM"], Fault(TOTAL)),
    long("publish", "fault: claim by plain store", &["OVERWRITE", "FAULT_BLIND_CLAIM"], Fault(TOTAL)),
    big("publish", "fault: claim of any lap", &["OVERWRITE", "FAULT_LATE_CLAIM"], Fault(TOTAL)),
    long("publish", "fault: exchange by plain store", &["OVERWRITE", "FAULT_EXCHANGE"], Fault(USED)),
    long("publish", "fault: the spare not replaced", &["OVERWRITE", "FAULT_SPARE"], Fault(TOTAL)),
    long("publish", "fault: copy not validated", &["OVERWRITE", "FAULT_COPY"], Fault(COMPLETE)),
    long(
        "publish",
        "fault: given back by plain store",
        &["OVERWRITE", "SNAPSHOTS=2", "EMITS=2", "FAULT_GIVE_BACK"],
        Fault(NUMBER),
    ),
    // Protocols Smp and Local.
    big("lttng", "Smp, overwrite", &["OVERWRITE", "EMITS=2"], Proof),
    big("lttng", "Smp, discard", &[], Proof),
    big("lttng", "Smp, discard, a killed writer", &["DEATHS=1"], Proof),
    big("lttng", "Smp, overwrite, a killed writer", &["OVERWRITE", "EMITS=1", "DEATHS=1", "FORCE"], Proof),
    long("lttng", "Smp, discard, forced switch", &["FORCE", "EMITS=1"], Proof),
    long("lttng", "Smp, discard, bounded: every run ends", &["BOUND", "EMITS=2"], Ends),
    long("lttng", "Local, discard", &["LOCAL", "EMITS=2"], Proof),
    big("lttng", "Local, overwrite", &["LOCAL", "OVERWRITE", "THREADS=2"], Proof),
    quick("lttng", "Local, all killed", &["LOCAL", "S=8", "EVEN", "EMITS=1", "DEATHS=3"], Proof),
    quick("lttng", "Smp, discard, short, killed writers", &["EMITS=2", "DEATHS=2"], Proof),
    quick("lttng", "fault: commit before data", &["FAULT_COMMIT_FIRST"], Fault(COMPLETE)),
    quick("lttng", "fault: commit not locked", &["FAULT_UNLOCKED_COMMIT"], Fault(UNFINISHED)),
    long("lttng", "fault: reserve not locked", &["FAULT_UNLOCKED_RESERVE"], Fault(TOTAL)),
    long("lttng", "fault: clock read before the write count", &["FAULT_STAMP"], Fault(STAMPS)),
    long("lttng", "fault: exact fit", &["FAULT_FIT"], Fault(ONE_SLOT)),
    long("lttng", "fault: no Equation 1", &["FAULT_EQUATION_1"], Fault(NUMBER)),
    long("lttng", "fault: no Equation 2", &["FAULT_EQUATION_2"], Fault(USED)),
    long("lttng", "fault: no Equation 3", &["OVERWRITE", "EMITS=2", "FAULT_EQUATION_3"], Fault(ONE_SLOT)),
    long("lttng", "fault: rest committed before it is closed", &["FAULT_CLOSE"], Fault(USED)),
    long("lttng", "fault: a late opener resets the size", &["FAULT_USED"], Fault(USED)),
    long("lttng", "fault: switch from an unopened sub-buffer", &["FAULT_OPENED"], Fault(TOTAL)),
    long("lttng", "fault: commit count loaded after head", &["FAULT_COUNT_LATE"], Fault(COMPLETE)),
    long("lttng", "fault: claim not locked", &["OVERWRITE", "FAULT_UNLOCKED_CLAIM"], Fault(NUMBER)),
    long(
        "lttng",
        "fault: commit seq from the event's own end",
        &["LOCAL", "S=8", "EVEN", "EMITS=1", "DEATHS=3", "FAULT_SEQ"],
        Fault(COMPLETE),
    ),
    // Weak memory.
    quick("weak", "discard", &[], Proof),
    quick("weak", "discard, membarrier", &["MEMBARRIER"], Proof),
    quick("weak", "overwrite", &["OVERWRITE"], Proof),
    quick("weak", "fault: head without release", &["FAULT_RELEASE"], Fault(WRITTEN)),
    quick(
        "weak",
        "fault: neither release nor membarrier",
        &["MEMBARRIER", "FAULT_MEMBARRIER"],
        Fault(WRITTEN),
    ),
    long("weak", "fault: head without acquire", &["FAULT_ACQUIRE"], Fault(WRITTEN)),
    long("weak", "fault: consumed without release", &["FAULT_CONSUMED"], Fault(WRITTEN)),
    long("weak", "fault: overwrite, head without release", &["OVERWRITE", "FAULT_RELEASE"], Fault(WRITTEN)),
    long("weak", "fault: no order after the claim", &["OVERWRITE", "FAULT_CLAIM"], Fault(WRITTEN)),
    long("weak", "fault: no fence after the copy", &["OVERWRITE", "FAULT_COPY"], Fault(WRITTEN)),
    long("weak", "fault: exchange without release", &["OVERWRITE", "FAULT_EXCHANGE"], Fault(WRITTEN)),
    // Attaching and detaching.
    quick("detach", "threads in and out of sequences", &[], Ends),
    quick("detach", "fault: no membarrier", &["FAULT_BARRIER"], Fault(MAPPED)),
    long("detach", "fault: membarrier before the key is cleared", &["FAULT_BARRIER_FIRST"], Fault(MAPPED)),
    long("detach", "fault: no check of the key", &["FAULT_KEY"], Fault(MAPPED)),
    long("detach", "fault: no mark", &["FAULT_MARK"], Fault(MAPPED)),
    long("detach", "fault: marks not waited for", &["FAULT_WAIT"], Fault(MAPPED)),
    long("detach", "fault: key without release", &["FAULT_ATTACH"], Fault(MAPPED)),
    // K42's buffers.
    quick("k42", "counters as in 002, section 2", &[], Race(COMPLETE)),
    quick("k42", "counts zeroed, as in 004, section 3.1", &["ZEROED"], Race(COMPLETE)),
    quick("k42", "contexts do not interrupt each other", &["ALONE"], Proof),
    quick("k42", "the same, counts zeroed", &["ALONE", "ZEROED"], Proof),
];
