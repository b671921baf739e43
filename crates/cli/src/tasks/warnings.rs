//! What is wrong with tasks, in words.

use crate::output::{plural, shown};
use crate::style::WARNING;
use crate::table::milliseconds;
use std::io::{Result, Write};
use tracewing_analysis::{Ran, Task};

/// Maximum number of printed warnings.
const WARNINGS: usize = 20;

/// Fewer spurious polls than this are worth no warning.
const FEW: u64 = 10;

/// Prints problems of tasks.
pub fn print(out: &mut impl Write, tasks: &[Task], ran: &Ran) -> Result<()> {
    let mut warnings = Vec::new();
    for task in tasks {
        if task.blocking_polls > 0 {
            let on = task.slept_on.map(|on| format!(" in {}", ran.names.get(on))).unwrap_or_default();
            let (slept, longest) = (milliseconds(task.slept_ns), milliseconds(task.longest_sleep_ns));
            warnings.push((
                task,
                format!(
                    "blocks its worker: {} of {} {} slept, {slept} ms in total, {longest} ms at most{on}",
                    task.blocking_polls,
                    task.polls,
                    plural(task.polls, "poll")
                ),
            ));
        }
        if task.long_polls > 0 {
            let (ran, polls) = (milliseconds(task.long_ns), task.long_polls);
            warnings.push((
                task,
                format!(
                    "does not yield: {polls} of {} {} were long, {ran} ms in total",
                    task.polls,
                    plural(task.polls, "poll")
                ),
            ));
        }
        let knows_effects = !ran.recorded.lacks_effects && ran.recorded.all_system_calls;
        if knows_effects && task.vain_polls >= FEW && task.vain_polls * 2 >= task.polls {
            warnings.push((
                task,
                format!("has spurious wakes: {} of {} polls had nothing to do", task.vain_polls, task.polls),
            ));
        }
    }
    for (task, warning) in warnings.iter().take(WARNINGS) {
        let whose = match (task.task, task.name.is_empty()) {
            (Some(number), true) => format!("task {number}"),
            (Some(number), false) => format!("task {number} ({})", shown(&task.name)),
            (None, _) => format!("tasks `{}`", shown(&task.name)),
        };
        let process = task.process.map(|process| format!(" of process {process}")).unwrap_or_default();
        writeln!(out, "{WARNING}warning{WARNING:#}: {whose}{process} {warning}")?;
    }
    if warnings.len() > WARNINGS {
        writeln!(
            out,
            "and {} more warnings; --sort long, blocking or spurious shows the tasks",
            warnings.len() - WARNINGS
        )?;
    }
    Ok(())
}
