//! Of which threads the kernel's events and samples are recorded.

use tracewing_units::Pid;

/// The threads whose kernel events and samples are recorded.
#[derive(Debug)]
pub(crate) enum Scope {
    /// All of the machine.
    System,
    /// Those of a process, and of all that it starts.
    Tree(Pid),
    /// Those of processes that run already, and of what they start.
    Processes {
        /// The processes that are recorded from the beginning on.
        pids: Vec<Pid>,
        /// Whether the processes that they fork are recorded, too.
        children: bool,
    },
}
