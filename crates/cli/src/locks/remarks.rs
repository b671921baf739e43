//! What `tracewing locks` says below its table: sums, and why times are unknown.

use super::args::{Args, By};
use super::rows::{Sums, Waits, has_kernels, is_of_programs};
use crate::format::TableFormat;
use crate::losses;
use crate::no_result::say;
use crate::output::{count_of, print_note, print_warning, shown};
use crate::parts::{EACH, Part, RECORD_KERNEL, RECORD_TASKS, explain_missing, leaves_out};
use crate::table::period;
use anyhow::Result;
use std::io::Write;
use tracewing_analysis::{LocksTable, Ran, Row, Unpaired};
use tracewing_trace::Recording;
use tracewing_vocabulary::{kernel, lock, user_thread};

/// How to record all of [`PARTS`].
const RECORD_ALL: &str = "`tracewing record` without -e and --exclude records all events about locks.";

/// How to record waits for the kernel's locks, which are not among the events recorded by default.
const RECORD_KERNEL_LOCKS: &str = "`tracewing record --locks` as root records them.";

/// What events that were lost would have added to.
const LEAST: &str = "`acquired`, `waited`, `refused`, `wait`, `held` and `hold`";

/// Why these have no holds.
const NOT_HELD: &str = "How long futexes and the kernel's locks were held is unknown (-): the kernel records only waits for them.";

/// Why futexes have no names, places and owners, and what has.
const FUTEXES: &str = "\
A futex is a word in memory on which threads slept, for a reason that no event shows: for a lock of Rust's standard \
library or of parking_lot, for example, or until a thread ended. If a program takes such locks from `tracewing::sync`, \
their owners, holds and places are recorded.";

/// Says that a graph is empty because nothing had to wait.
pub const NO_WAITS: &str = "No thread or task waited for another one.";

/// What is recorded by events that a recording of locks may be without.
pub const PARTS: [Part; 3] = [
    Part {
        what: "acquisitions (lock:acquired, user_thread:acquired)",
        names: &[lock::Acquired::NAME, user_thread::Acquired::NAME],
        without: "no acquisition is known, nor any critical section",
        has_all: EACH,
    },
    Part {
        what: "requests (lock:requested, user_thread:wait)",
        names: &[lock::Requested::NAME, user_thread::Wait::NAME],
        without: "how long acquisitions waited is not known, nor which thread had the lock meanwhile",
        has_all: EACH,
    },
    Part {
        what: "releases (lock:released, user_thread:released)",
        names: &[lock::Released::NAME, user_thread::Released::NAME],
        without: "how long locks were held is unknown",
        has_all: EACH,
    },
];

/// Unsuccessful requests: rare, so a recording without a class of them need not lack any.
pub const REFUSALS: Part = Part {
    what: "refused or cancelled requests (lock:refused, user_thread:given_up)",
    names: &[lock::Refused::NAME, user_thread::GivenUp::NAME],
    without: "how long requests waited is unknown",
    has_all: EACH,
};

/// Other events that release a lock; programs that do without them have no class of them.
pub const OTHER_RELEASES: Part = Part {
    what: "other releases (lock:not_released, lock:condition_wait, lock:condition_woken)",
    names: &[lock::NotReleased::NAME, lock::ConditionWait::NAME, lock::ConditionWoken::NAME],
    without: "how long locks were held is unknown",
    has_all: EACH,
};

/// Waits of other kinds, which lines of threads, tasks and places may contain.
const OTHER_WAITS: [Part; 2] = [
    Part {
        what: "futex calls (syscall_entry_futex, syscall_exit_futex)",
        names: &[kernel::FutexEntry::NAME, kernel::FutexExit::NAME],
        without: "no row includes waits for futexes",
        has_all: |recording| has_each(recording, &OTHER_WAITS[0]),
    },
    Part {
        what: "waits for the kernel's locks (contention_begin, contention_end)",
        names: &[kernel::ContentionBegin::NAME, kernel::ContentionEnd::NAME],
        without: "no row includes them",
        has_all: |recording| has_each(recording, &OTHER_WAITS[1]),
    },
];

fn has_each(recording: &Recording, part: &Part) -> bool {
    part.names.iter().all(|name| recording.has_event(name))
}

fn waits(Waits { known, unknown, total }: &Waits) -> String {
    let waits = known + unknown;
    match (known, unknown) {
        (_, 0) => format!("{waits} waits of {} in total", period(*total)),
        (0, _) => format!("{waits} waits of unknown length"),
        _ => format!("{waits} waits ({unknown} of unknown length, the others {} in total)", period(*total)),
    }
}

pub fn print_totals(out: &mut impl Write, found: &LocksTable, sums: &Sums) -> std::io::Result<()> {
    let waits = sums.waits.as_ref().map_or_else(|| "unknown waits".to_owned(), waits);
    let acquired = match (found.unpaired, sums.acquired) {
        (Some(Unpaired::Events), _) | (_, None) => "unknown".to_owned(),
        (_, Some(count)) => count.to_string(),
    };
    writeln!(out, "{acquired} acquisitions, {waits}, in {}", period(found.duration_ns))?;
    if found.incomplete > 0 {
        let count = found.incomplete;
        print_note(
            out,
            &format!(
                "{count} requests, acquisitions and releases lack a counterpart and are left out; incomplete waits are in \
                 the table only if they are at the beginning or end"
            ),
        )?;
    }
    for (process, function, path) in &found.shadowed {
        let process = process.map_or_else(|| "?".to_owned(), |process| process.to_string());
        let what = match function.as_str() {
            "malloc" => "the locks of its allocator are shown as the program's",
            _ => "locks that the program acquires through it may be missing",
        };
        print_note(out, &format!("process {process} uses {function} of {}: {what}", shown(path)))?;
    }
    Ok(())
}

/// Says that locks of several processes may be one line.
pub fn warn_of_strangers(found: &LocksTable) {
    if found.strangers > 0 {
        print_warning(&format!(
            "No event shows the process of {}, so a line without a process may combine locks of several processes at one \
             address. Larger buffers keep more of the events that show it, and so do kernel events if they were left out.",
            count_of(found.strangers, "thread")
        ));
    }
}

/// Says why times are not known.
pub fn explain_unknown(found: &LocksTable, args: &Args, ran: &Ran, out: &mut impl Write) -> Result<()> {
    let format = args.table.format();
    let has_tasks = found.rows.iter().any(|row| row.account.has_tickets);
    if ran.recorded.lacks_user_switches && (args.by == By::Task || has_tasks) {
        let without = match args.by {
            By::Task => "which task took a lock is unknown (-)",
            _ => "tasks are shown by the lines of their requests, which several tasks may share",
        };
        explain_missing(&[Part::task_switches(without)], RECORD_TASKS, out, format, &args.input)?;
    }
    if let Some(unpaired) = found.unpaired {
        let why = match unpaired {
            Unpaired::Events => "the filter leaves out some of the events that they consist of",
            Unpaired::Cpus => "only some CPUs are selected, and waits and holds may begin or end on others",
            Unpaired::Tids => {
                "a task may begin to wait on one thread and end on another (--task selects tasks, --process all tasks of a program)"
            }
        };
        let needs_pairs = |row: &Row| row.account.acquisitions().is_none();
        let acquisitions = match found.rows.iter().any(needs_pairs) {
            true => ", and how often conditions, barriers, futexes and the kernel's locks were acquired,",
            false => "",
        };
        say(out, args.table.format(), &format!("Waits and holds{acquisitions} are unknown (-): {why}."))?;
    } else if found.rows.iter().any(|row| row.account.unpaired > 0) {
        let why = "Waits and holds of tasks that are not instrumented are unknown (-): the program was built with a version of \
                   tracewing-tokio whose events do not show which of them belong together.";
        say(out, args.table.format(), why)?;
    }
    if ran.is_part_of_time {
        let why = "The recording is a part of the time of another one: waits that neither begin nor end in it are not shown.";
        say(out, args.table.format(), why)?;
    }
    explain_left_out(found, args, out)?;
    let is_table = args.graph.is_none() && args.histogram.is_none();
    if is_table && found.rows.iter().any(|row| has_kernels(row) && !row.account.kinds.are_held()) {
        say(out, format, NOT_HELD)?;
    }
    let has_futexes = || found.rows.iter().any(|row| row.account.kinds.has_futexes());
    if is_table && format == TableFormat::Table && has_futexes() {
        say(out, format, FUTEXES)?;
    }
    if let Some(line) = losses::least(ran, LEAST).filter(|_| is_table) {
        say(out, format, &line)?;
    }
    if is_table && args.by != By::Lock {
        explain_missing(&OTHER_WAITS[..1], RECORD_KERNEL, out, format, &args.input)?;
        explain_missing(&OTHER_WAITS[1..], RECORD_KERNEL_LOCKS, out, format, &args.input)?;
    }
    // An extract without them has the futexes of locks instead.
    let lacks_locks = args.input.open()?.0.left_out().contains(lock::Acquired::NAME);
    if found.rows.iter().any(is_of_programs) || lacks_locks {
        let mut parts = PARTS.to_vec();
        for part in [REFUSALS, OTHER_RELEASES] {
            if leaves_out(&part, &args.input)? {
                parts.push(part);
            }
        }
        explain_missing(&parts, RECORD_ALL, out, format, &args.input)?;
    }
    Ok(())
}

/// Says what is not in a histogram or a graph.
fn explain_left_out(found: &LocksTable, args: &Args, out: &mut impl Write) -> Result<()> {
    let format = args.table.format();
    if args.histogram.is_some() && found.lacks_holds {
        let why = "Lengths and depths are unknown: the recording lacks some acquisitions and releases.";
        say(out, format, why)?;
    }
    if args.histogram.is_some() && found.unknown_depths > 0 {
        let acquisitions = count_of(found.unknown_depths, "acquisition");
        let why = format!(
            "The depths do not include {acquisitions}: no event shows which other locks were held at that time."
        );
        say(out, format, &why)?;
    }
    if args.graph.is_some() && found.graph.edges.is_empty() && found.lacks_owners == [false; 2] {
        say(out, format, NO_WAITS)?;
    }
    if args.graph.is_some() {
        for line in without_owners(found) {
            say(out, format, &line)?;
        }
    }
    if args.histogram.is_none() {
        forgotten_holders(found).map_or(Ok(()), |line| say(out, format, &line))?;
    }
    Ok(())
}

/// What is not in a graph.
pub fn without_owners(found: &LocksTable) -> impl Iterator<Item = String> {
    let of = ["threads (lock:*)", "tasks (user_thread:*)"];
    let lacking = of.into_iter().zip(found.lacks_owners).filter(|(_, lacks)| *lacks);
    lacking.map(|(of, _)| {
        format!(
            "Waits of {of} are not in the graph: the recording lacks some of their requests, acquisitions and releases."
        )
    })
}

/// That not all holders of a lock were followed, which a table and a graph of owners have to say.
pub fn forgotten_holders(found: &LocksTable) -> Option<String> {
    (found.forgotten_holders > 0).then(|| {
        format!(
            "Owners may be missing, or not be those that held a lock longest: up to {} of a lock at once were not followed, as \
             far as events show, since 1,024 others had acquired it later.",
            count_of(found.forgotten_holders, "holder")
        )
    })
}
