//! What of a result is missing, as events of some kind were not recorded.

use crate::format::TableFormat;
use crate::input::Input;
use crate::no_result::say;
use crate::output::plural;
use anyhow::Result;
use std::collections::BTreeSet;
use std::io::Write;
use tracewing_rules::Glob;
use tracewing_trace::Recording;
use tracewing_trace::super_trace::{Coverage, Interrupts};
use tracewing_vocabulary::kernel::{self, Interrupt, SystemCall};
use tracewing_vocabulary::user_thread;

/// Events without which a part of a result is missing.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    /// What they are: `system calls`.
    pub what: &'static str,
    /// Patterns for their names; one has to fit.
    pub names: &'static [&'static str],
    /// What is unknown without them: the end of a sentence, after a colon.
    pub without: &'static str,
    /// Whether a recording with some of them has all kinds.
    pub has_all: fn(&Recording) -> bool,
}

/// A recording that has classes of one of the names has all that matters of them.
pub const EACH: fn(&Recording) -> bool = |_| true;

impl Part {
    pub const fn switches(without: &'static str) -> Self {
        Self {
            what: "switches of threads (sched_switch)",
            names: &[kernel::Switch::NAME],
            without,
            has_all: EACH,
        }
    }

    pub const fn system_calls(without: &'static str) -> Self {
        let names = &[SystemCall::ENTRIES, SystemCall::EXITS];
        let has_all = |recording: &Recording| Coverage::of(recording).system_calls;
        Self { what: "system calls (syscall_*)", names, without, has_all }
    }

    pub const fn wakes(without: &'static str) -> Self {
        let names = &[kernel::Waking::NAME, kernel::Wakeup::NAME];
        Self { what: "wake-ups (sched_waking, sched_wakeup)", names, without, has_all: EACH }
    }

    pub const fn interrupts(without: &'static str) -> Self {
        let has_all = |recording: &Recording| Coverage::of(recording).interrupts != Interrupts::Unrecorded;
        Self { what: "interrupts (irq_*, x86_irq_vectors_*)", names: &Interrupt::GLOBS, without, has_all }
    }

    pub const fn softirqs(without: &'static str) -> Self {
        let has_all = |recording: &Recording| Interrupt::are_all_softirqs(|name| recording.has_event(name));
        Self { what: "softirqs (irq_softirq_*)", names: &Interrupt::SOFTIRQ_GLOBS, without, has_all }
    }

    pub const fn page_faults(without: &'static str) -> Self {
        const NAMES: [&str; 2] = [kernel::PageFaultUser::NAME, kernel::PageFaultKernel::NAME];
        let has_all = |recording: &Recording| NAMES.iter().all(|name| recording.has_event(name));
        Self { what: "page faults (x86_exceptions_page_fault_*)", names: &NAMES, without, has_all }
    }

    pub const fn task_switches(without: &'static str) -> Self {
        let names = &[user_thread::Switch::NAME];
        Self { what: "switches of tasks (user_thread:switch)", names, without, has_all: EACH }
    }

    pub const fn task_wakes(without: &'static str) -> Self {
        let names = &[user_thread::Wake::NAME];
        Self { what: "wakes of tasks (user_thread:wake)", names, without, has_all: EACH }
    }
}

/// How to record all of the kernel's events.
pub const RECORD_KERNEL: &str =
    "`tracewing record` as root, without --no-kernel and -k, records all of them.";

/// How to record all of a program's events about its tasks.
pub const RECORD_TASKS: &str = "`tracewing record -e 'user_thread:*'` records all events about tasks.";

/// Explains what is unknown of so many tasks without wakes, in a recording that has others'.
///
/// # Errors
/// See [`say`].
pub fn explain_wakeless(tasks: u64, why: &str, out: &mut impl Write, format: TableFormat) -> Result<()> {
    if tasks == 0 {
        return Ok(());
    }
    let (of, have) = (plural(tasks, "task"), if tasks == 1 { "has" } else { "have" });
    say(
        out,
        format,
        &format!("{tasks} {of} {have} no wakes in the recording, as tokio's hooks report none: {why}."),
    )
}

/// Explains the consequences for each requested part whose event classes the recording lacks, and how to
/// record them.
///
/// # Errors
/// See [`Input::open`].
pub fn explain_missing(
    parts: &[Part],
    how: &str,
    out: &mut impl Write,
    format: TableFormat,
    input: &Input,
) -> Result<()> {
    let (recording, _) = input.open()?;
    let mut left_out = recording.left_out();
    left_out.extend(recording.excluded());
    let missing = |part: &Part| {
        let leaves_out =
            || part.names.iter().any(|name| left_out.iter().any(|class| Glob::new(*name).matches(class)));
        match part.names.iter().any(|name| recording.has_event(name)) {
            false => Some("has no"),
            true => (leaves_out() || !(part.has_all)(recording)).then_some("lacks some"),
        }
    };
    let missing: Vec<_> = parts.iter().filter_map(|part| Some((part, missing(part)?))).collect();
    for (part, lacks) in &missing {
        say(out, format, &format!("The recording {lacks} {}: {}.", part.what, part.without))?;
    }
    if !missing.is_empty() {
        say(out, format, how)?;
    }
    Ok(())
}

/// Whether events of this part were left out of a recording.
///
/// # Errors
/// See [`Input::open`].
pub fn leaves_out(part: &Part, input: &Input) -> Result<bool> {
    let (recording, _) = input.open()?;
    let mut left_out = recording.left_out();
    left_out.extend(recording.excluded());
    Ok(part.names.iter().any(|name| left_out.iter().any(|class| Glob::new(*name).matches(class))))
}

/// Whether a recording has all events of each part, and with `filtered` the filter leaves out none of
/// them by its name.
///
/// # Errors
/// See [`Input::open`].
pub fn has_all<const N: usize>(parts: &[Part; N], input: &Input, filtered: bool) -> Result<[bool; N]> {
    let (recording, filter) = input.open()?;
    let filtered_out = if filtered { filter.leaves_out(recording) } else { BTreeSet::new() };
    let mut left_out = recording.left_out();
    left_out.extend(recording.excluded());
    left_out.extend(filtered_out.iter().map(String::as_str));
    Ok(parts.each_ref().map(|part| {
        let is_left_out = |name: &&str| left_out.iter().any(|class| Glob::new(*name).matches(class));
        part.names.iter().any(|name| recording.has_event(name))
            && (part.has_all)(recording)
            && !part.names.iter().any(is_left_out)
    }))
}
