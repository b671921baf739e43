//! Lines of `tracewing breakdown`: what a process did in a place, what others did for it, its threads, and
//! the machine.

use super::known::{
    Known, has_blocked, has_ipc, has_irq, has_places, has_ready, has_switches, hidden, unknown_waits,
};
use crate::output::interrupt;
use crate::table::{Cell, Column, columns};
use tracewing_analysis::{
    BreakdownRow as Row, BreakdownTable, Entry, Ipc, Machine, Outside, Part, ProcessBreakdown, Spent, Start,
    Waits,
};
use tracewing_programs::symbols::Symbols;
use tracewing_units::{Duration, Pid};

/// A line of the table.
pub struct Line<'b> {
    process: Option<Pid>,
    process_name: &'b str,
    /// `inside`, `outside`, `threads` or `machine`.
    part: &'static str,
    place: String,
    figures: Figures<'b>,
}

enum Figures<'b> {
    /// Of a place in a process.
    Inside(&'b Row, Known),
    /// Of others, of threads and of the machine: a time, and how many.
    Short(Option<Duration>, Option<u64>),
    /// Time in which no event shows where the threads of a process were.
    Unseen(Duration),
}

impl<'b> Line<'b> {
    fn new(process: &'b ProcessBreakdown, part: &'static str, place: String, figures: Figures<'b>) -> Self {
        Line { process: process.process, process_name: &process.name, part, place, figures }
    }

    fn inside(&self) -> Option<(&'b Row, Known)> {
        match self.figures {
            Figures::Inside(row, known) => Some((row, known)),
            _ => None,
        }
    }

    /// Whether it is of a system call.
    pub fn is_call(&self) -> bool {
        self.inside().is_some_and(|(row, _)| is_call(row))
    }

    /// A number of the kernel's events of a place in a process, where the recording has them.
    fn count(&self, count: fn(&Row) -> u64, is_known: fn(&Row, Known) -> bool) -> Cell {
        let known = self.inside().filter(|(row, known)| is_known(row, *known));
        known.map_or(Cell::None, |(row, known)| Cell::least(known.lossy.kernel, count(row)))
    }

    /// How many events the program had there.
    fn events(&self) -> Cell {
        let known = self.inside().filter(|(row, known)| has_places(row, *known));
        known.map_or(Cell::None, |(row, known)| Cell::least(known.lossy.programs, row.events))
    }

    /// A time of a place in a process, where the recording has its events.
    fn time(&self, ns: fn(&Row) -> Duration, is_known: fn(&Row, Known) -> bool) -> Cell {
        Cell::ns(self.inside().filter(|(row, known)| is_known(row, *known)).map(|(row, _)| ns(row)))
    }

    fn own(&self) -> Cell {
        match self.figures {
            Figures::Short(ns, _) => Cell::ns(ns),
            _ => self.time(|row| row.own_ns, has_switches),
        }
    }

    fn calls(&self) -> Cell {
        match self.figures {
            Figures::Short(_, count) => Cell::count(count),
            _ => self.count(|row| row.calls, |row, known| is_call(row) && known.recorded.system_calls),
        }
    }

    fn ipc_over(&self) -> Cell {
        let over = |(ipc, waits): (Ipc, Waits)| (Some(over(ipc).to_owned()), waits.ns);
        let known = self.inside().filter(|(row, known)| has_ipc(row, *known));
        known.map_or(Cell::None, |(row, _)| Cell::Parts(row.ipc_by_kind().into_iter().map(over).collect()))
    }

    fn interrupted_by(&self) -> Cell {
        let part = |part: &Part| (part.on.clone(), part.ns);
        match self.inside() {
            Some((row, known)) if known.recorded.interrupts => {
                Cell::Parts(row.interrupts.iter().map(part).collect())
            }
            _ => Cell::None,
        }
    }

    /// Time that is in no column that is shown.
    fn unknown(&self) -> Cell {
        match self.figures {
            Figures::Unseen(ns) => Cell::Ns(ns),
            Figures::Inside(row, known) if has_switches(row, known) && !known.cuts.waits => {
                Cell::Ns(unknown_waits(row, known) + hidden(has_irq(row, known), row.interrupts_ns()))
            }
            _ => Cell::None,
        }
    }
}

/// A filter chooses those that are woken, and not all that a waker does.
fn has_woke(row: &Row, known: Known) -> bool {
    has_places(row, known) && known.recorded.wakes && !known.cuts.lwps
}

fn is_call(row: &Row) -> bool {
    matches!(row.place, Spent::Call(_))
}

pub fn columns<'b>() -> Vec<Column<Line<'b>>> {
    columns! { line: Line<'b>;
        number "process" "process" extra, "process id" => line.process.into();
        text "name" "name" extra, "name of the process" => match line.part {
            "machine" => Cell::None,
            _ => line.process_name.into(),
        };
        text "section" "section" extra, "inside: the process itself; outside: what others did for it; threads: its threads; machine: all CPUs"
            => line.part.into();
        text "activity" "activity" key + shrinking, "system call; user: the program's own code; kernel: a kernel thread; unknown: no event shows it"
            => line.place.as_str().into();
        duration "running" "running_ns" key, "time on a CPU, with page faults" => line.own();
        number "calls" "calls" high, "number of calls; in section outside, how often it happened; in section threads, number of threads" => line.calls();
        number "events" "events" low, "events of the program" => line.events();
        number "faults" "page_faults" low, "page faults; the kernel does not record their time"
            => line.count(|row| row.faults, |row, known| has_places(row, known) && known.recorded.page_faults);
        duration "ipc" "ipc_ns" high, "time waiting for another thread" => line.time(|row| row.ipc().ns, has_ipc);
        number "waits" "ipc_waits" normal, "how often it waited for another thread"
            => line.count(|row| row.ipc().count, has_ipc);
        parts "via" "ipc_via" normal, "how it was connected to the thread that it waited for: pipe, socket, futex, signal"
            => line.ipc_over();
        number "woke" "woke" low, "number of threads woken"
            => line.count(|row| row.woke, has_woke);
        duration "irq" "interrupted_ns" normal, "time of interrupts"
            => line.time(Row::interrupts_ns, has_irq);
        parts "by" "interrupted_by" low, "interrupts that irq consists of" => line.interrupted_by();
        duration "blocked" "blocked_ns" high, "time waiting for something other than a thread"
            => line.time(|row| row.blocked_ns, has_blocked);
        duration "ready" "ready_ns" high, "time waiting for a CPU"
            => line.time(|row| row.ready_ns, has_ready);
        duration "unknown" "unknown_ns" extra, "time in no other column: no event shows where the threads were, or what they waited for"
            => line.unknown();
    }
}

/// What a process did in each place.
pub fn inside(process: &ProcessBreakdown, known: Known) -> Vec<Line<'_>> {
    let line = |row| Line::new(process, "inside", place(row).to_owned(), Figures::Inside(row, known));
    process.rows.iter().map(line).collect()
}

/// What a process did in system calls.
pub fn calls(process: &ProcessBreakdown, known: Known) -> impl Iterator<Item = Line<'_>> {
    inside(process, known).into_iter().filter(Line::is_call)
}

/// What others did for a process.
pub fn outside(process: &ProcessBreakdown, known: Known) -> Vec<Line<'_>> {
    let lines = process.outside.iter().map(|other| {
        let figures = Figures::Short(outside_ns(other, known), outside_count(other, known));
        Line::new(process, "outside", helper(other.process, &other.name), figures)
    });
    lines.collect()
}

/// How long another process or an interrupt was on CPUs for a process. For interrupts this requires the
/// beginning and end of all kinds, since they are nested, and there are none of interrupts that came while
/// threads ran that are not followed; for processes, switches and wakes.
pub fn outside_ns(other: &Outside, known: Known) -> Option<Duration> {
    other.ns.filter(|ns| match other.process {
        // Those that woke it all took some.
        None => known.recorded.interrupts && !known.cuts.lwps && !ns.is_zero(),
        Some(_) => known.recorded.switches && outside_count(other, known).is_some(),
    })
}

/// How often: known from wakes; for processes, from softirqs, too, which their calls may have raised. It is
/// for all that a thread does, so not for parts of that.
pub fn outside_count(other: &Outside, known: Known) -> Option<u64> {
    let has_wakers = other.process.is_none() || known.recorded.softirqs;
    (known.recorded.wakes && has_wakers && !known.cuts.lwps).then_some(other.count)
}

/// Threads of a process by where they begin.
pub fn threads<'b>(process: &'b ProcessBreakdown, known: Known, symbols: &mut Symbols) -> Vec<Line<'b>> {
    let lines = process.entries.iter().map(|entry| {
        let own = known.recorded.switches.then_some(entry.own_ns);
        Line::new(process, "threads", start(entry, symbols), Figures::Short(own, Some(entry.threads)))
    });
    lines.collect()
}

/// Time in which it is not known where threads of a process were.
pub fn unseen(process: &ProcessBreakdown) -> Option<Line<'_>> {
    let figures = Figures::Unseen(process.unseen_ns);
    (!process.unseen_ns.is_zero()).then(|| Line::new(process, "inside", "unseen".to_owned(), figures))
}

/// What all CPUs did.
pub fn machine(found: &BreakdownTable) -> Vec<Line<'_>> {
    let parts = found.machine.iter().flat_map(parts_of);
    let line = |(name, ns): (&str, Option<Duration>)| Line {
        process: None,
        process_name: "",
        part: "machine",
        place: name.to_owned(),
        figures: Figures::Short(ns, None),
    };
    parts.map(line).collect()
}

fn place(row: &Row) -> &str {
    match &row.place {
        Spent::Call(call) => call,
        Spent::User => "user",
        Spent::Kernel => "kernel",
        Spent::Unknown => "unknown",
    }
}

fn over(ipc: Ipc) -> &'static str {
    match ipc {
        Ipc::Pipe => "pipe",
        Ipc::Socket => "socket",
        Ipc::Futex => "futex",
        Ipc::Signal => "signal",
    }
}

/// Where threads begin, as precisely as the recording and the files allow.
pub fn start(entry: &Entry, symbols: &mut Symbols) -> String {
    match &entry.start {
        Start::Named(name) => name.clone(),
        Start::Code { path, address } => symbols.name(path, *address),
        Start::Address(address) => format!("{address:#x}"),
    }
}

pub fn helper(process: Option<Pid>, name: &str) -> String {
    match process {
        None => interrupt(name),
        Some(process) if name.is_empty() => format!("process {process}"),
        Some(process) => format!("process {process} ({name})"),
    }
}

pub fn parts_of(machine: &Machine) -> [(&'static str, Option<Duration>); 6] {
    [
        ("user", Some(machine.user_ns)),
        ("system calls", Some(machine.calls_ns)),
        ("kernel", Some(machine.kernel_ns)),
        ("interrupts", machine.interrupts_ns),
        ("idle", Some(machine.idle_ns)),
        ("unknown", Some(machine.unknown_ns)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracewing_analysis::{Cuts, Lossy, Recorded};

    #[test]
    fn what_woke_a_process_took_some_time() {
        let recorded =
            Recorded { switches: true, wakes: true, interrupts: true, softirqs: true, ..Recorded::default() };
        let known = Known { recorded, modes: true, cuts: Cuts::default(), lossy: Lossy::default() };
        let time = |process, ns| {
            let other = Outside { process, name: "interrupt".to_owned(), count: 472, ns };
            outside_ns(&other, known).map(Duration::as_ns)
        };
        assert_eq!(time(None, Some(Duration::ZERO)), None);
        assert_eq!(time(None, Some(Duration::from_ns(1))), Some(1));
        assert_eq!(time(Some(Pid(1)), None), None, "it is not followed");
    }
}
