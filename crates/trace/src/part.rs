//! What a part of a recording has to carry so that its reader knows what a reader of the whole knows of it, and believes no more:
//! where it begins, whether switches were left out, of whom it is, and events that tell names.

use crate::filter::{Filter, ThreadPattern};
use crate::open::{Recording, Trace};
use std::collections::{BTreeMap, BTreeSet};
use tracewing_ctf::model::{EnvValue, EventRecordClass, TraceClass};

/// What all that a part says of itself begins with.
const PART: &str = "part_";

/// When it begins, in nanoseconds on the recording's clock. What lies before only tells names.
const BEGIN: &str = "part_begin";

/// When it ends, likewise: until then nothing is missing behind its last event.
const END: &str = "part_end";

/// Whether switches of threads that are in it are all that there were.
const SWITCHES: (&str, &str) = ("part_switches", "some");

/// Whether system calls that are in it are all that there were.
const CALLS: (&str, &str) = ("part_system_calls", "some");

/// Whether interrupts that are in it are all that there were.
const INTERRUPTS: (&str, &str) = ("part_interrupts", "some");

/// The names of classes of which events were left out, a line each.
const LEFT_OUT: &str = "part_left_out";

/// Of which user threads it is: patterns, a line each. One that was made a part again has a second one, and so on, behind this name.
const TASKS: &str = "part_tasks";

/// Whether it is of certain LWPs, on which only user threads are seen then.
const LWPS: (&str, &str) = ("part_lwps", "some");

/// Of which LWPs it is: `PROCESS/TID`, or `TID` where that is not known. All others were left out, apart from what tells who they are.
const TIDS: &str = "part_tids";

/// Whether it is of certain CPUs, on which only threads are seen then.
const CPUS: (&str, &str) = ("part_cpus", "some");

/// LWPs, each with its process where that is known.
pub(crate) type Lwps = BTreeMap<i32, Option<i32>>;

/// Says when a part begins.
pub(crate) fn set_begin(class: &mut TraceClass, ns: i64) {
    class.set_env(BEGIN, ns);
}

/// Says until when a part has all.
pub(crate) fn set_end(class: &mut TraceClass, ns: i64) {
    class.set_env(END, ns);
}

/// Says that switches were left out that others are not.
pub(crate) fn set_some_switches(class: &mut TraceClass) {
    class.set_env(SWITCHES.0, SWITCHES.1);
}

/// Whether switches were left out.
pub(crate) fn has_some_switches(trace: &Trace) -> bool {
    trace.class().env(SWITCHES.0) == Some(&SWITCHES.1.into())
}

/// Says that begins or ends of system calls were left out.
pub(crate) fn set_some_system_calls(class: &mut TraceClass) {
    class.set_env(CALLS.0, CALLS.1);
}

/// Whether begins or ends of system calls were left out.
pub(crate) fn has_some_system_calls(trace: &Trace) -> bool {
    trace.class().env(CALLS.0) == Some(&CALLS.1.into())
}

/// Says that begins or ends of interrupts were left out.
pub(crate) fn set_some_interrupts(class: &mut TraceClass) {
    class.set_env(INTERRUPTS.0, INTERRUPTS.1);
}

/// Whether begins or ends of interrupts were left out.
pub(crate) fn has_some_interrupts(trace: &Trace) -> bool {
    trace.class().env(INTERRUPTS.0) == Some(&INTERRUPTS.1.into())
}

/// Says of which classes events were left out, besides those of which others were before.
pub(crate) fn set_left_out(class: &mut TraceClass, names: &[&str]) {
    let before = match class.env(LEFT_OUT) {
        Some(EnvValue::String(text)) => text.clone(),
        _ => String::new(),
    };
    let all: BTreeSet<&str> = before.lines().chain(names.iter().copied()).collect();
    if !all.is_empty() {
        class.set_env(LEFT_OUT, all.into_iter().collect::<Vec<_>>().join("\n").as_str());
    }
}

/// Says whose events a part has, as far as `filter` leaves out those of others; `lwps`
/// are those that it chooses.
pub(crate) fn set_subjects(class: &mut TraceClass, filter: &Filter, lwps: Option<&Lwps>) {
    if !filter.threads.is_empty() {
        let patterns: Vec<String> = filter.threads.iter().map(ThreadPattern::to_string).collect();
        let number = class.env.iter().filter(|(name, _)| name.starts_with(TASKS)).count();
        let name = if number == 0 { TASKS.to_owned() } else { format!("{TASKS}_{}", number + 1) };
        class.set_env(&name, patterns.join("\n").as_str());
    }
    for (is_chosen, (name, some)) in [(!filter.tids.is_empty(), LWPS), (!filter.cpus.is_empty(), CPUS)] {
        if is_chosen {
            class.set_env(name, some);
        }
    }
    if let Some(lwps) = lwps {
        let of_process = |(tid, process): (&i32, &Option<i32>)| match process {
            Some(process) => format!("{process}/{tid}"),
            None => tid.to_string(),
        };
        let numbers: Vec<String> = lwps.iter().map(of_process).collect();
        class.set_env(TIDS, numbers.join(" ").as_str());
    }
}

impl Trace {
    /// Whether events of the class of this name were left out when it was made a part of another one.
    pub fn leaves_out(&self, class: &str) -> bool {
        let text = match self.class().env(LEFT_OUT) {
            Some(EnvValue::String(text)) => text.as_str(),
            _ => "",
        };
        text.lines().any(|name| name == class)
    }
}

impl Recording {
    /// The patterns for the user threads that it is of: one of each list fits those. Empty where it is of all.
    pub(crate) fn part_tasks(&self) -> Vec<Vec<ThreadPattern>> {
        let env = self.traces().iter().flat_map(|trace| &trace.class().env);
        let mut texts: Vec<&str> = env
            .filter_map(|(name, value)| match value {
                EnvValue::String(text) if name.starts_with(TASKS) => Some(text.as_str()),
                _ => None,
            })
            .collect();
        texts.sort_unstable();
        texts.dedup();
        texts.iter().map(|text| text.lines().map(ThreadPattern::new).collect()).collect()
    }

    /// The names of classes of which events were left out when it was made a part of another one.
    pub fn left_out(&self) -> BTreeSet<&str> {
        let texts = self.traces().iter().filter_map(|trace| match trace.class().env(LEFT_OUT) {
            Some(EnvValue::String(text)) => Some(text.lines()),
            _ => None,
        });
        texts.flatten().collect()
    }

    /// Whether it is of certain LWPs.
    pub fn is_part_of_lwps(&self) -> bool {
        self.traces().iter().any(|trace| trace.class().env(LWPS.0).is_some())
    }

    /// Whether something of it is a part of another recording, and says so.
    pub fn is_part(&self) -> bool {
        let mut env = self.traces().iter().flat_map(|trace| &trace.class().env);
        env.any(|(name, _)| name.starts_with(PART))
    }

    /// The LWPs that it is of, each with its process, if it is of certain ones or of certain processes.
    pub(crate) fn part_tids(&self) -> Option<Lwps> {
        let texts = self.traces().iter().filter_map(|trace| match trace.class().env(TIDS) {
            Some(EnvValue::String(text)) => Some(text),
            _ => None,
        });
        let lwp = |text: &str| match text.split_once('/') {
            Some((process, tid)) => Some((tid.parse().ok()?, Some(process.parse().ok()?))),
            None => Some((text.parse().ok()?, None)),
        };
        let lwps = texts.map(|text| text.split(' ').filter_map(lwp));
        lwps.fold(None, |all: Option<Lwps>, some| Some(all.into_iter().flatten().chain(some).collect()))
    }

    /// Whether it is of certain CPUs.
    pub fn is_part_of_cpus(&self) -> bool {
        self.traces().iter().any(|trace| trace.class().env(CPUS.0).is_some())
    }

    /// When it begins, if all of it is a part of another one that says so.
    pub(crate) fn part_begin(&self) -> Option<i64> {
        self.told_times(BEGIN)?.into_iter().min()
    }

    /// When it ends, if all of it is a part of another one that says so.
    pub(crate) fn part_end(&self) -> Option<i64> {
        self.told_times(END)?.into_iter().max()
    }

    /// What each trace says under this name, if all do.
    fn told_times(&self, name: &str) -> Option<Vec<i64>> {
        let times = self.traces().iter().map(|trace| match trace.class().env(name) {
            Some(EnvValue::Integer(ns)) => Some(*ns),
            _ => None,
        });
        times.collect()
    }
}

/// Whether events of a class tell what others mean: names of threads and processes, and where in memory which file is.
pub(crate) fn explains(class: &EventRecordClass) -> bool {
    let Some(name) = class.name.as_deref() else { return false };
    name.starts_with("lttng_statedump_")
        || matches!(
            name,
            "tracewing:thread"
                | "tracewing:known_thread"
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

/// Whether events of a class tell who single threads of the kernel are.
pub(crate) fn names_lwp(class: &EventRecordClass) -> bool {
    matches!(class.name.as_deref(), Some("task_newtask" | "sched_process_fork" | "sched_process_exec"))
}

/// Whether events of a class tell what single tasks are called.
pub(crate) fn names_task(class: &EventRecordClass) -> bool {
    matches!(class.name.as_deref(), Some("user_thread:create" | "user_thread:name"))
}
