//! What a part of a recording has to carry so that its reader knows what a reader of the whole knows of it: where it begins, whether
//! switches were left out, and events that tell names.

use crate::open::{Recording, Trace};
use tracewing_ctf::model::{EnvValue, EventRecordClass, TraceClass};

/// When it begins, in nanoseconds on the recording's clock. What lies before only tells names.
const BEGIN: &str = "part_begin";

/// Whether switches of threads that are in it are all that there were.
const SWITCHES: (&str, &str) = ("part_switches", "some");

/// Says when a part begins.
pub(crate) fn set_begin(class: &mut TraceClass, ns: i64) {
    class.set_env(BEGIN, ns);
}

/// Says that switches were left out that others are not.
pub(crate) fn set_some_switches(class: &mut TraceClass) {
    class.set_env(SWITCHES.0, SWITCHES.1);
}

/// Whether switches were left out.
pub(crate) fn has_some_switches(trace: &Trace) -> bool {
    trace.class().env(SWITCHES.0) == Some(&SWITCHES.1.into())
}

impl Recording {
    /// When it begins, if all of it is a part of another one that says so.
    pub(crate) fn part_begin(&self) -> Option<i64> {
        let begins = self.traces().iter().map(|trace| match trace.class().env(BEGIN) {
            Some(EnvValue::Integer(ns)) => Some(*ns),
            _ => None,
        });
        begins.collect::<Option<Vec<_>>>()?.into_iter().min()
    }
}

/// Whether events of a class tell what others mean: names of threads and processes, and where in memory which file is.
pub(crate) fn explains(class: &EventRecordClass) -> bool {
    let Some(name) = class.name.as_deref() else { return false };
    name.starts_with("lttng_statedump_")
        || matches!(
            name,
            "tracewing:thread"
                | "user_thread:origin"
                | "lock:call_chain"
                | "lock:image"
                | "lock:place"
                | "lock:shadowed"
                | "function:image"
                | "profile:mapping"
                | "profile:thread"
                | "profile:fork"
                | "profile:kernel_symbol"
        )
}

/// Whether events of a class tell what single tasks are called.
pub(crate) fn names_task(class: &EventRecordClass) -> bool {
    matches!(class.name.as_deref(), Some("user_thread:create" | "user_thread:name"))
}
