//! `tracewing breakdown`: what each process did in each system call and outside of them, and who else worked for it.

use crate::format::TableFormat;
use crate::input::{Input, conclude, warn_of_losses};
use crate::nothing::{Part as MissingPart, SWITCHES, say, tell_missing};
use crate::output::{interrupt, print_strangers, shown};
use crate::screen;
use crate::table::{Cell, Head, Order, Table, figure, hidden, milliseconds, text};
use anyhow::Result;
use std::io::Write;
use std::process::ExitCode;
use tracewing_analysis::{
    Breakdown, BreakdownRow as Row, BreakdownTable, Entry, Ipc, Machine, Part, ProcessBreakdown, Recorded,
    Spent, Start, Waits, total,
};
use tracewing_symbols::Symbols;

/// What `tracewing breakdown` accepts.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tracewing record --system-wide -o my-trace -- make
  tracewing breakdown my-trace -n 3
  tracewing breakdown my-trace --process postgres --sort ipc
  tracewing breakdown my-trace --from +1s --to +2s --format csv > breakdown.csv

Times are in ms (ns in JSON and CSV). A row is a system call, the program's own code (user), or the work of a thread of the \
kernel's own (kernel). own is time on a CPU; it includes page faults, which are counted: the kernel does not tell their time. \
ipc is time waiting for another thread, waits how often, over by what most: pipe, socket, futex, signal; woke how many threads were woken. \
irq is what interrupts took, by which one most; blocked is all other waiting, ready waiting for a CPU. `unknown` is time of which \
no event tells in what it was spent.

Outside is what others did for the process: those that it woke, until they waited again, and the interrupts that woke it. That is \
part of their time. Then come its threads, by their first function where the program tells it, else by name; and at the end what \
all CPUs did, where the recording is of the whole machine (--system-wide) and no filter leaves anybody out.")]
pub struct Args {
    /// Sort the rows of a process by this column, the largest first
    #[arg(long, value_name = "COLUMN")]
    sort: Option<String>,

    /// Print only the N processes that had the most time on CPUs
    #[arg(short = 'n', long = "count", value_name = "N")]
    count: Option<usize>,

    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: TableFormat,

    #[command(flatten)]
    input: Input,
}

/// How there would be all of [`PARTS`].
const RECORD_ALL: &str = "A recording by root without --no-kernel and -k has all of them.";

/// What is told by other events.
const PARTS: [MissingPart; 5] = [
    MissingPart {
        what: "switches of threads (sched_switch)",
        names: &["sched_switch"],
        without: "no time is known, only how often something was done",
    },
    MissingPart {
        what: "system calls (syscall_*)",
        names: &["syscall_entry_*"],
        without: "what was done in them is in `user` or `unknown`",
    },
    MissingPart {
        what: "wake-ups (sched_waking, sched_wakeup)",
        names: &["sched_waking", "sched_wakeup"],
        without: "nobody waits for others, wakes them, or does anything outside; waits are `blocked`",
    },
    MissingPart {
        what: "interrupts (irq_*, x86_irq_vectors_*)",
        names: &["irq_*", "softirq_entry", "x86_irq_vectors_*"],
        without: "their time is in `own`",
    },
    MissingPart {
        what: "page faults (x86_exceptions_page_fault_*)",
        names: &["x86_exceptions_page_fault_*"],
        without: "`faults` are not known",
    },
];

pub fn run(args: &Args) -> Result<ExitCode> {
    let order = Order { sort: args.sort.clone(), rows: None };
    Table::by_position(FIGURES).arrange(&order)?;
    let mut breakdown = Breakdown::new();
    let ran = args.input.analyse(&mut breakdown)?;
    let mut found = breakdown.finish(&ran);
    let all = found.processes.len();
    let is_known = found.processes.iter().any(ProcessBreakdown::is_known);
    found.processes.truncate(args.count.unwrap_or(all));
    let known = Known { recorded: ran.recorded, modes: !ran.modeless };
    let mut symbols = Symbols::new();
    let mut out = screen::stdout(args.format.into());
    match args.format {
        // Figures that are all 0 because nothing is known are for nobody.
        TableFormat::Table if !is_known => print_strangers(&mut out, found.strangers)?,
        TableFormat::Table => print(&mut out, &found, known, all, &order, &mut symbols)?,
        _ => {
            let cpus = found.machine.as_ref().map_or(Cell::None, |machine| Cell::Count(machine.cpus));
            let members = [
                ("duration_ns", Cell::Ns(found.duration_ns)),
                ("cpus", cpus),
                ("strangers", Cell::Count(found.strangers)),
            ];
            flat(&found, known, &order, &mut symbols)?.write(
                &mut out,
                args.format,
                ("rows", &members),
                |_| Ok(()),
            )?;
        }
    }
    let has_times = |process: &ProcessBreakdown| process.rows.iter().all(Row::has_times);
    if is_known && ran.modeless && !found.processes.iter().all(has_times) {
        let why = "Not all system calls were recorded: which of them, or which code of the program, took the time in `unknown` is not \
                   known (-).";
        say(&mut out, args.format, why)?;
    }
    match is_known {
        true => tell_missing(&PARTS, RECORD_ALL, &mut out, args.format, &args.input)?,
        false => SWITCHES.tell(&mut out, args.format, &args.input, &ran)?,
    }
    out.flush()?;
    warn_of_losses(&ran);
    Ok(conclude(ran))
}

/// What is told of a place.
const FIGURES: [Head; 14] = [
    text("in", "row"),
    figure("own", "own_ns"),
    figure("calls", "calls"),
    figure("events", "events"),
    figure("faults", "faults"),
    figure("ipc", "ipc_ns"),
    figure("waits", "ipc_waits"),
    text("over", "ipc_over"),
    figure("woke", "woke"),
    figure("irq", "interrupted_ns"),
    text("by", "interrupted_by"),
    figure("blocked", "blocked_ns"),
    figure("ready", "ready_ns"),
    hidden("unseen_ns"),
];

/// Columns of a table of all that is told: whose, and what part of it.
const WHOSE: [Head; 3] = [figure("process", "process"), text("name", "name"), text("part", "part")];

/// What the recording has events for.
#[derive(Debug, Clone, Copy)]
struct Known {
    recorded: Recorded,
    /// Whether a thread was in its program or in which system call, at any time.
    modes: bool,
}

fn figures(row: &Row, known: Known) -> Vec<Cell> {
    let Known { recorded, modes } = known;
    // What happened in a place that no event tells is counted in `unknown`.
    let places = modes || matches!(row.place, Spent::Unknown | Spent::Kernel);
    let ipc = row.ipc();
    let calls = match row.place {
        Spent::Call(_) => Cell::count_if(recorded.system_calls, row.calls),
        _ => Cell::None,
    };
    let over = |(ipc, waits): (Ipc, Waits)| (Some(over(ipc).to_owned()), waits.ns);
    let part = |part: &Part| (part.on.clone(), part.ns);
    // Switches say how long a thread waited, wakes for which thread.
    let time_if = |is_known: bool, ns: u64| if is_known { Cell::Ns(ns) } else { Cell::None };
    let switches = recorded.switches && row.has_times();
    // Over what a thread waits, the system calls of both say.
    let ipcs = switches && recorded.wakes && modes;
    let interrupts = recorded.interrupts && row.has_times();
    vec![
        place(&row.place).into(),
        time_if(switches, row.own_ns),
        calls,
        Cell::count_if(places, row.events),
        Cell::count_if(places && recorded.page_faults, row.faults),
        time_if(ipcs, ipc.ns),
        Cell::count_if(ipcs, ipc.count),
        Cell::Parts(row.ipc_by_kind().into_iter().map(over).collect()),
        Cell::count_if(places && recorded.wakes, row.woke),
        time_if(interrupts, row.interrupts_ns()),
        Cell::Parts(row.interrupts.iter().map(part).collect()),
        time_if(ipcs, row.blocked_ns),
        time_if(switches && recorded.wakes, row.ready_ns),
        Cell::None,
    ]
}

fn place(place: &Spent) -> &str {
    match place {
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

/// What is told of others, of threads and of the machine: a name, a time, a number.
fn short(name: &str, ns: u64, count: Option<u64>) -> Vec<Cell> {
    let mut cells = vec![Cell::None; FIGURES.len()];
    (cells[0], cells[1]) = (name.into(), Cell::Ns(ns));
    cells[2] = count.map_or(Cell::None, Cell::Count);
    cells
}

/// Where threads begin, as precisely as anything tells.
fn start(entry: &Entry, symbols: &mut Symbols) -> String {
    match &entry.start {
        Start::Named(name) => name.clone(),
        Start::Code { path, address } => symbols.name(path, *address),
        Start::Address(address) => format!("{address:#x}"),
    }
}

fn helper(process: Option<i32>, name: &str) -> String {
    match process {
        None => interrupt(name),
        Some(process) if name.is_empty() => format!("process {process}"),
        Some(process) => format!("process {process} ({name})"),
    }
}

fn parts_of(machine: &Machine) -> [(&'static str, u64); 6] {
    [
        ("user", machine.user_ns),
        ("system calls", machine.calls_ns),
        ("kernel", machine.kernel_ns),
        ("interrupts", machine.interrupts_ns),
        ("idle", machine.idle_ns),
        ("unknown", machine.unknown_ns),
    ]
}

/// All as one table, for programs.
fn flat(found: &BreakdownTable, known: Known, order: &Order, symbols: &mut Symbols) -> Result<Table> {
    let mut table = Table::by_position([&WHOSE[..], &FIGURES].concat());
    let mut push = |whose: [Cell; 3], cells: Vec<Cell>| table.push(whose.into_iter().chain(cells).collect());
    for process in &found.processes {
        let whose = |part: &str| [process.process.into(), process.name.as_str().into(), part.into()];
        for cells in rows(process, known, order)?.into_rows() {
            push(whose("inside"), cells);
        }
        if process.unseen_ns > 0 {
            let mut cells = vec![Cell::None; FIGURES.len()];
            (cells[0], cells[FIGURES.len() - 1]) = ("unseen".into(), Cell::Ns(process.unseen_ns));
            push(whose("inside"), cells);
        }
        for other in &process.outside {
            push(whose("outside"), short(&helper(other.process, &other.name), other.ns, Some(other.count)));
        }
        for entry in &process.entries {
            let mut cells = short(&start(entry, symbols), entry.own_ns, Some(entry.threads));
            if !known.recorded.switches {
                cells[1] = Cell::None;
            }
            push(whose("threads"), cells);
        }
    }
    for (name, ns) in found.machine.iter().flat_map(parts_of) {
        push([Cell::None, Cell::None, "machine".into()], short(name, ns, None));
    }
    Ok(table)
}

fn rows(process: &ProcessBreakdown, known: Known, order: &Order) -> Result<Table> {
    let mut table = Table::by_position(FIGURES);
    process.rows.iter().for_each(|row| table.push(figures(row, known)));
    table.arrange(order)?;
    Ok(table)
}

fn print(
    out: &mut impl Write,
    found: &BreakdownTable,
    known: Known,
    all: usize,
    order: &Order,
    symbols: &mut Symbols,
) -> Result<()> {
    for process in &found.processes {
        print_process(out, process, known, order, symbols)?;
    }
    if let Some(machine) = &found.machine {
        print_machine(out, machine, found.duration_ns)?;
    }
    let more = all - found.processes.len();
    if more > 0 {
        writeln!(out, "{more} more processes; without -n, they are here")?;
    }
    Ok(print_strangers(out, found.strangers)?)
}

/// As in the paper's Figure 8: what it did, what others did for it, where its threads began.
fn print_process(
    out: &mut impl Write,
    process: &ProcessBreakdown,
    known: Known,
    order: &Order,
    symbols: &mut Symbols,
) -> Result<()> {
    match (process.process, process.name.as_str()) {
        (None, _) => writeln!(out, "Threads whose process no event tells")?,
        (Some(number), "") => writeln!(out, "Process {number}")?,
        (Some(number), name) => writeln!(out, "Process {number} ({})", shown(name))?,
    }
    rows(process, known, order)?.print(out)?;
    let recorded = known.recorded;
    let sum = |is_known: bool, part: fn(&Row) -> u64| match is_known && recorded.switches {
        true => milliseconds(total(process.rows.iter().map(part))),
        false => "unknown".to_owned(),
    };
    let running = milliseconds(process.running_ns());
    writeln!(
        out,
        "In the process: {} ms on CPUs, {} of them in interrupts; waited {} ms for other threads, {} for anything else, {} for a CPU",
        if recorded.switches { &running } else { "unknown" },
        sum(recorded.interrupts, Row::interrupts_ns),
        sum(recorded.wakes && known.modes, |row| row.ipc().ns),
        sum(recorded.wakes && known.modes, |row| row.blocked_ns),
        sum(recorded.wakes, |row| row.ready_ns),
    )?;
    if process.unseen_ns > 0 {
        writeln!(out, "For {} ms no event tells where its threads were", milliseconds(process.unseen_ns))?;
    }
    let list = |title, what, lines: Vec<(String, u64, u64)>, out: &mut _| {
        let mut table = Table::by_position([text(title, ""), figure("ms", ""), figure(what, "")]);
        for (name, ns, count) in lines {
            table.push(vec![Cell::Text(name), Cell::Ns(ns), Cell::Count(count)]);
        }
        table.print(out)
    };
    if !process.outside.is_empty() {
        writeln!(out)?;
        let lines = process.outside.iter();
        let lines = lines.map(|other| (helper(other.process, &other.name), other.ns, other.count)).collect();
        list("outside, for it", "times", lines, out)?;
    }
    writeln!(out)?;
    let lines =
        process.entries.iter().map(|entry| (start(entry, symbols), entry.own_ns, entry.threads)).collect();
    list("its threads", "threads", lines, out)?;
    writeln!(out)?;
    Ok(())
}

fn print_machine(out: &mut impl Write, machine: &Machine, duration_ns: u64) -> Result<()> {
    let whole = (machine.cpus * duration_ns).max(1);
    let mut table = Table::by_position([text("all CPUs", ""), figure("ms", ""), figure("%", "")]);
    for (name, ns) in parts_of(machine).into_iter().chain([("together", machine.total_ns())]) {
        table.push(vec![name.into(), Cell::Ns(ns), Cell::Rate(ns as f64 * 100.0 / whole as f64)]);
    }
    table.print(out)?;
    let cpus = if machine.cpus == 1 { "CPU" } else { "CPUs" };
    writeln!(out, "of {} {cpus} x {} ms", machine.cpus, milliseconds(duration_ns))?;
    Ok(())
}
