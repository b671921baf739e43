//! What of a result is missing, as events of some kind were not recorded.

use crate::format::TableFormat;
use crate::input::Input;
use crate::no_result::say;
use crate::output::plural;
use anyhow::Result;
use std::collections::BTreeSet;
use std::io::Write;
use tracewing_analysis::Ran;
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

/// Why tasks have no wakes in a recording.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Wakeless {
    /// How many have none, as tokio's hooks report none.
    pub hooked: u64,
    /// Whether the wakes of some were not recorded.
    pub unrecorded: bool,
}

impl Wakeless {
    /// Of tasks: how many each is, whether it lacks wakes, and whether only hooks know it.
    ///
    /// # Errors
    /// See [`Input::open`].
    pub fn of(
        tasks: impl Iterator<Item = (u64, bool, bool)> + Clone,
        ran: &Ran,
        input: &Input,
    ) -> Result<Self> {
        let is_left_out = leaves_out(&Part::task_wakes(""), input)?;
        Ok(Self::why(tasks, ran.recorded.lacks_user_wakes, is_left_out))
    }

    /// `is_absent`: the recording has none of any task; `is_left_out`: they were not to be in it.
    fn why(
        tasks: impl Iterator<Item = (u64, bool, bool)> + Clone,
        is_absent: bool,
        is_left_out: bool,
    ) -> Self {
        let count = |is_meant: fn(bool, bool) -> bool| -> u64 {
            tasks
                .clone()
                .filter(|(_, lacks, hooked)| is_meant(*lacks, *hooked))
                .map(|(count, ..)| count)
                .sum()
        };
        let (all, hooked) = (count(|_, _| true), count(|_, hooked| hooked));
        match (is_absent, hooked) {
            (false, _) => Self { hooked: count(|lacks, _| lacks), unrecorded: false },
            (true, 0) => Self { hooked: 0, unrecorded: true },
            // Then the others are hooks' as well, and ended in their first poll.
            (true, _) if !is_left_out => Self { hooked: all, unrecorded: false },
            (true, _) => Self { hooked, unrecorded: hooked < all },
        }
    }

    /// Explains what is unknown of those that hooks know.
    ///
    /// # Errors
    /// See [`say`].
    pub fn explain(self, why: &str, out: &mut impl Write, format: TableFormat) -> Result<()> {
        let tasks = self.hooked;
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

    /// Those of the parts about tasks that were not recorded, not only not reported.
    pub fn parts(self, parts: &[Part]) -> Vec<Part> {
        let is_meant = |part: &&Part| self.unrecorded || part.names != [user_thread::Wake::NAME];
        parts.iter().filter(is_meant).copied().collect()
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_that_hooks_know_have_no_wakes_to_record() {
        let why = |tasks: &[(u64, bool, bool)], is_absent, is_left_out| {
            let Wakeless { hooked, unrecorded } =
                Wakeless::why(tasks.iter().copied(), is_absent, is_left_out);
            (hooked, unrecorded)
        };
        let (instrumented, hooked, brief) = ((1, false, false), (2, true, true), (1, true, false));
        assert_eq!(why(&[instrumented, hooked], false, false), (2, false));
        assert_eq!(why(&[instrumented], true, true), (0, true));
        // Nothing else has wakes, so there is no event of the class.
        assert_eq!(why(&[hooked, brief], true, false), (3, false));
        assert_eq!(why(&[hooked], true, true), (2, false));
        assert_eq!(why(&[hooked, instrumented], true, true), (2, true));
        let parts = [Part::task_switches(""), Part::task_wakes("")];
        let left = |unrecorded| Wakeless { hooked: 0, unrecorded }.parts(&parts).len();
        assert_eq!([left(true), left(false)], [2, 1]);
    }
}
