//! Which threads and tasks wait for which: as a table, for graphviz, and deadlocks.

use crate::output::shown;
use crate::place;
use crate::table::{Cell, Column, Table, TableOptions, columns, period};
use anyhow::Result;
use std::io::{Result as IoResult, Write};
use tracewing_analysis::{Edge, Graph, Party};
use tracewing_programs::symbols::Symbols;

/// A thread or a user thread, with its name if it has one; of user threads that are not known, the place that
/// made the request.
pub fn party(party: Party, name: &str) -> String {
    let number = match party {
        Party::Place(..) if name.is_empty() => return "unknown task".to_owned(),
        Party::Place(..) => return name.to_owned(),
        Party::Thread(tid) => tid.to_string(),
        Party::Task(Some(process), task) => format!("task {process}/{task}"),
        Party::Task(None, task) => format!("task {task}"),
    };
    match name {
        "" => number,
        name => format!("{name}/{number}"),
    }
}

/// A line of the table: the waits of one for a lock that another one had.
pub struct Line<'g> {
    edge: &'g Edge,
    /// The number of the deadlock that it is in.
    deadlock: Option<u64>,
    at: String,
}

pub fn columns<'g>() -> Vec<Column<Line<'g>>> {
    columns! { line: Line<'g>;
        number "process" "process" high, "process id" => line.edge.process.into();
        text "waiter" "waiter" key, "thread or task that waited" => waiter(line.edge).into();
        text "kind" "kind" normal, "what the lock is" => line.edge.kind.into();
        text "lock" "lock" key, "address of the lock" => Cell::Text(format!("{:#x}", line.edge.lock));
        text "owner" "owner" key, "thread or task that held it" => owner(line.edge).into();
        number "waits" "waits" normal, "how many waits" => Cell::Count(line.edge.waits.count);
        period "wait" "wait_ns" high, "total time of the waits" => Cell::Period(line.edge.waits.total_ns);
        period "wait-max" "wait_max_ns" normal, "the longest wait" => Cell::Period(line.edge.waits.max_ns);
        period "pending" "pending_ns" high, "length of a wait that has not ended when the recording ends" => Cell::period(line.edge.lasts_ns);
        number "deadlock" "deadlock" high, "number of the deadlock that it is part of" => Cell::count(line.deadlock);
        text "at" "at" low + shrinking, "place of the request" => line.at.as_str().into();
    }
}

/// A line for each of those that waited, for each lock and each that had it.
///
/// # Errors
/// The options name a column that there is not.
pub fn table(graph: &Graph, options: &TableOptions, symbols: &mut Symbols) -> Result<Table> {
    let layout = options.layout(&columns())?;
    let lines = graph.edges.iter().enumerate().map(|(place, edge)| {
        let deadlock = graph.cycles.iter().zip(1..).find(|(cycle, _)| cycle.contains(&place));
        Line { edge, deadlock: deadlock.map(|(_, number)| number), at: place::chain(&edge.frames, symbols) }
    });
    Ok(layout.table(&lines.collect::<Vec<_>>()))
}

/// Those that wait for each other when the recording ends.
pub fn print_deadlocks(out: &mut impl Write, graph: &Graph, symbols: &mut Symbols) -> IoResult<()> {
    for (number, cycle) in graph.cycles.iter().enumerate() {
        writeln!(out, "deadlock {}: none of these can continue", number + 1)?;
        for edge in cycle.iter().map(|place| &graph.edges[*place]) {
            let since = edge.lasts_ns.map(period).unwrap_or_default();
            let at = match &edge.frames[..] {
                [] => String::new(),
                frames => format!(", at {}", place::chain(frames, symbols)),
            };
            let line = format!(
                "  {} has waited for {since} for {} {:#x}, which {} has{at}",
                waiter(edge),
                edge.kind,
                edge.lock,
                owner(edge)
            );
            writeln!(out, "{}", shown(&line))?;
        }
    }
    Ok(())
}

/// The graph for graphviz: waits that last are bold, those of deadlocks red.
pub fn write_dot(out: &mut impl Write, graph: &Graph) -> IoResult<()> {
    writeln!(out, "digraph locks {{")?;
    for (place, edge) in graph.edges.iter().enumerate() {
        let look = match edge.lasts_ns {
            _ if graph.cycles.iter().any(|cycle| cycle.contains(&place)) => ", style=bold, color=red",
            Some(_) => ", style=bold",
            None => "",
        };
        writeln!(
            out,
            "  {} -> {} [label=\"{} {:#x}\\n{} x, {}\"{look}];",
            quoted(&waiter(edge)),
            quoted(&owner(edge)),
            edge.kind,
            edge.lock,
            edge.waits.count,
            period(edge.waits.total_ns)
        )?;
    }
    writeln!(out, "}}")
}

fn waiter(edge: &Edge) -> String {
    party(edge.waiter, &edge.waiter_name)
}

fn owner(edge: &Edge) -> String {
    party(edge.owner, &edge.owner_name)
}

/// A node's name as graphviz wants it.
fn quoted(name: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in name.chars().filter(|letter| !letter.is_control()) {
        if matches!(letter, '"' | '\\') {
            quoted.push('\\');
        }
        quoted.push(letter);
    }
    quoted + "\""
}
