//! The table of `tracewing locks`: a line for each lock, thread, task, place or call chain.

use super::args::By;
use super::graph::party;
use crate::place;
use crate::table::{Cell, Column, columns};
use tracewing_analysis::{Lossy, Party, Row, Subject, Sum};
use tracewing_programs::symbols::Symbols;
use tracewing_units::{Duration, Tid};

/// A line of the table.
pub struct Line<'r> {
    row: &'r Row,
    known: Known,
    /// The place in a program, or the call chain.
    at: String,
}

/// Whether the recording has all events of a kind that belong to a line.
#[derive(Clone, Copy)]
pub struct Known {
    pub acquisitions: bool,
    pub requests: bool,
    /// Requests that ended otherwise than by an acquisition.
    pub refusals: bool,
    pub releases: bool,
    /// What each line is of: tasks are, if it is known when each of them ran.
    pub subjects: bool,
    /// Whose events were lost.
    pub lossy: Lossy,
}

/// Whether programs recorded some of its locks, not only the kernel.
pub fn is_of_programs(row: &Row) -> bool {
    row.account.kinds.has_programs()
}

/// Whether the kernel recorded some of its waits.
pub fn has_kernels(row: &Row) -> bool {
    row.account.kinds.has_kernels()
}

pub fn lines<'r>(rows: &'r [Row], known: Known, symbols: &mut Symbols) -> Vec<Line<'r>> {
    let all = Known { acquisitions: true, requests: true, refusals: true, releases: true, ..known };
    let of_programs = rows.iter().any(is_of_programs);
    let line = |row: &'r Row| {
        let has_futex = row.account.kinds.has_futexes();
        let mut known = if is_of_programs(row) || of_programs && has_futex { known } else { all };
        // A wait for a program's lock is no wait for a futex, if both its ends are recorded.
        known.acquisitions &= known.requests || !has_futex;
        known.lossy.programs &= is_of_programs(row);
        known.lossy.kernel &= has_kernels(row);
        Line { row, known, at: place::chain(&row.frames, symbols) }
    };
    rows.iter().map(line).collect()
}

/// Sums over all lines, where each line knows its part.
pub struct Sums {
    pub acquired: Option<u64>,
    pub waits: Option<Waits>,
}

/// How many waits there were, and how long those took whose length is known.
#[derive(Default)]
pub struct Waits {
    pub known: u64,
    pub unknown: u64,
    pub total: Duration,
}

impl Sums {
    pub fn of(lines: &[Line<'_>]) -> Self {
        // Which task acquired it does not matter for the sum.
        let mut sums = Sums { acquired: Some(0), waits: Some(Waits::default()) };
        for Line { row, known, .. } in lines {
            let account = &row.account;
            let acquired = account.acquisitions().filter(|_| known.acquisitions);
            sums.acquired = sums.acquired.zip(acquired).map(|(sum, count)| sum.saturating_add(count));
            let knows_waits = known.acquisitions && known.requests && known.refusals && account.unpaired == 0;
            sums.waits = sums.waits.filter(|_| knows_waits).map(|sum| Waits {
                known: sum.known.saturating_add(account.waits.count),
                unknown: sum.unknown.saturating_add(account.unknown_waits),
                total: sum.total + account.waits.total_ns,
            });
        }
        sums
    }
}

impl Line<'_> {
    /// Which no event may show.
    fn process_name(&self) -> Cell {
        match self.row.process_name.as_str() {
            "" => Cell::None,
            name => name.into(),
        }
    }

    /// A number of events, some of which may be lost.
    fn count(&self, count: Option<u64>) -> Cell {
        count.map_or(Cell::None, |count| Cell::least(self.known.lossy.any(), count))
    }

    /// A sum of periods, some of which may be lost.
    fn total(&self, sum: Option<&Sum>) -> Cell {
        let is_known = |sum: &&Sum| sum.count > 0 || !self.known.lossy.any();
        Cell::period(sum.filter(is_known).map(|sum| sum.total_ns))
    }

    fn knows_acquisitions(&self) -> bool {
        self.known.acquisitions && self.known.subjects
    }

    fn knows_waits(&self) -> bool {
        self.knows_acquisitions() && self.known.requests && self.known.refusals
    }

    fn waits(&self) -> Option<&Sum> {
        self.row.account.known_waits().filter(|_| self.knows_waits())
    }

    fn holds(&self) -> Option<&Sum> {
        self.row.account.known_holds().filter(|_| self.knows_acquisitions() && self.known.releases)
    }

    fn knows_refusals(&self) -> bool {
        self.knows_waits() && self.row.account.unpaired == 0
    }

    /// Which thread or task had the lock for most of the waiting, and for how long.
    fn owner(&self) -> Option<(Party, Duration)> {
        self.row.account.owner().filter(|_| self.knows_waits() && self.known.releases)
    }

    fn owner_tid(&self) -> Option<Tid> {
        match self.owner() {
            Some((Party::Thread(tid), _)) => Some(tid),
            _ => None,
        }
    }
}

/// A figure of a sum of periods; there is none of no periods.
fn of_some(sum: Option<&Sum>, figure: fn(&Sum) -> Duration) -> Cell {
    Cell::period(sum.filter(|sum| sum.count > 0).map(figure))
}

pub fn columns<'r>(by: By) -> Vec<Column<Line<'r>>> {
    let mut columns = columns! { line: Line<'r>;
        number "process" "process" key, "id of its process" => line.row.process.into();
        text "name" "name" high + shrinking, "name of the process" => line.process_name();
    };
    columns.extend(subject(by));
    columns.extend(figures());
    columns
}

/// What a line is of.
fn subject<'r>(by: By) -> Vec<Column<Line<'r>>> {
    match by {
        By::Lock => columns! { line: Line<'r>;
            text "lock" "lock" key, "address of the lock" => match line.row.subject {
                Subject::Lock(lock) | Subject::Futex(lock) => Cell::Text(format!("{lock:#x}")),
                _ => Cell::None,
            };
        },
        By::Thread => columns! { line: Line<'r>;
            number "thread" "tid" key, "thread id" => match line.row.subject {
                Subject::Thread(tid) => tid.into(),
                _ => Cell::None,
            };
        },
        By::Task => columns! { line: Line<'r>;
            number "task" "task" key, "number of the task" => match line.row.subject {
                Subject::Task(task) => task.into(),
                _ => Cell::None,
            };
            text "task-name" "task_name" key + shrinking, "name of the task" => line.row.task_name.as_str().into();
        },
        By::Caller | By::Chain => Vec::new(),
    }
}

fn figures<'r>() -> Vec<Column<Line<'r>>> {
    columns! { line: Line<'r>;
        number "acquired" "acquired" high, "how often the lock was acquired"
            => line.count(line.row.account.acquisitions().filter(|_| line.knows_acquisitions()));
        number "waited" "waited" high, "waits for it, including those that had not ended"
            => line.count(line.row.account.waited().filter(|_| line.knows_waits()));
        number "refused" "refused" low, "how often the lock was not acquired: a failed try, or a time-out"
            => line.count(Some(line.row.account.refused).filter(|_| line.knows_refusals()));
        period "wait" "wait_ns" key, "total time waited" => line.total(line.waits());
        number "unknown-waits" "unknown_waits" extra, "waits of unknown length; included in waited, but not in wait"
            => Cell::count_if(line.knows_refusals(), line.row.account.unknown_waits);
        period "wait-avg" "wait_avg_ns" normal, "mean wait" => Cell::period(line.waits().and_then(Sum::mean_ns));
        period "wait-max" "wait_max_ns" normal, "the longest wait" => of_some(line.waits(), |sum| sum.max_ns);
        period "wait-min" "wait_min_ns" low, "the shortest wait" => of_some(line.waits(), |sum| sum.min_ns);
        number "spins" "spins" low, "attempts to acquire the lock while waiting, if the program records them"
            => Cell::count(line.row.account.spins.filter(|_| line.known.subjects));
        number "held" "held" low, "number of holds whose beginning and end are known"
            => line.count(line.holds().map(|holds| holds.count));
        period "hold" "hold_ns" high, "total time held" => line.total(line.holds());
        period "hold-avg" "hold_avg_ns" normal, "mean hold" => Cell::period(line.holds().and_then(Sum::mean_ns));
        period "hold-max" "hold_max_ns" normal, "the longest hold" => of_some(line.holds(), |sum| sum.max_ns);
        period "hold-min" "hold_min_ns" extra, "the shortest hold" => of_some(line.holds(), |sum| sum.min_ns);
        text "owner" "owner" normal, "thread or task that held the lock for most of the waiting time"
            => line.owner().map_or(Cell::None, |(owner, _)| Cell::Text(party(owner, &line.row.owner_name)));
        number "owner-tid" "owner_tid" extra, "thread id of the owner, if it is a thread" => line.owner_tid().into();
        duration "owner-wait" "owner_wait_ns" extra, "part of the waiting time in which the owner held the lock"
            => Cell::ns(line.owner().map(|(_, ns)| ns));
        text "kind" "kind" normal, "what the lock is" => Cell::Text(line.row.account.kinds.names().join(", "));
        text "at" "at" high + shrinking, "place of the call; for a lock, thread or task, the place of the longest hold"
            => line.at.as_str().into();
    }
}
