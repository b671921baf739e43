//! Says which numbers of a table are unknown because the filter leaves out what they depend on.

use crate::format::TableFormat;
use crate::no_result::say;
use anyhow::Result;
use std::io::Write;

#[derive(Debug, Clone, Copy)]
pub enum Why {
    /// Chosen CPUs leave out all waiting.
    OnCpus,
    /// They are counted for a thread as a whole.
    PartsOfThreads,
    /// Chosen CPUs or threads leave out all that a task does between polls.
    InPolls,
    /// They are known of whole polls only.
    PartsOfPolls,
}

impl Why {
    fn line(self, columns: &str) -> String {
        match self {
            Why::OnCpus => {
                format!("The filter chooses CPUs, and threads wait on none: {columns} are unknown (-).")
            }
            Why::PartsOfThreads => {
                format!("The filter chooses parts of what threads do: {columns} are unknown (-).")
            }
            Why::InPolls => format!(
                "The filter chooses CPUs or threads, and between polls tasks are on none: {columns} are unknown (-)."
            ),
            Why::PartsOfPolls => format!("The filter chooses parts of polls: {columns} are unknown (-)."),
        }
    }
}

/// Why these columns are unknown, if the filter leaves out what they depend on.
///
/// # Errors
/// See [`say`].
pub fn explain(
    is_cut: bool,
    why: Why,
    columns: &str,
    out: &mut impl Write,
    format: TableFormat,
) -> Result<()> {
    match is_cut {
        true => say(out, format, &why.line(columns)),
        false => Ok(()),
    }
}
