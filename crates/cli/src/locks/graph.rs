//! Who waits for whom, as a table, for graphviz, and deadlocks.

use super::place;
use crate::output::shown;
use crate::table::{Cell, Table, figure, period, text};
use std::io::{Result as IoResult, Write};
use tracewing_analysis::{Edge, Graph, Party};
use tracewing_symbols::Symbols;

/// A thread or a user thread, with its name if it has one; of user threads that are not known, the place that made the request.
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

/// A line for each of those that waited, for each lock and each that had it.
pub fn table(graph: &Graph, symbols: &mut Symbols) -> Table {
    let mut table = Table::by_position([
        figure("process", "process"),
        text("waiter", "waiter"),
        text("kind", "kind"),
        text("lock", "lock"),
        text("owner", "owner"),
        figure("waits", "waits"),
        figure("wait", "wait_ns"),
        figure("wait-max", "wait_max_ns"),
        figure("lasts", "lasts_ns"),
        figure("deadlock", "deadlock"),
        text("at", "at"),
    ]);
    for (place, edge) in graph.edges.iter().enumerate() {
        let deadlock = graph.cycles.iter().position(|cycle| cycle.contains(&place));
        table.push(vec![
            edge.process.into(),
            Cell::Text(waiter(edge)),
            edge.kind.into(),
            Cell::Text(format!("{:#x}", edge.lock)),
            Cell::Text(owner(edge)),
            Cell::Count(edge.waits.count),
            Cell::Period(edge.waits.total_ns),
            Cell::Period(edge.waits.max_ns),
            edge.lasts_ns.map_or(Cell::None, Cell::Period),
            deadlock.map_or(Cell::None, |number| Cell::Count(number as u64 + 1)),
            Cell::Text(place::chain(&edge.frames, symbols)),
        ]);
    }
    table
}

/// Who waits for each other when the recording ends.
pub fn print_deadlocks(out: &mut impl Write, graph: &Graph, symbols: &mut Symbols) -> IoResult<()> {
    for (number, cycle) in graph.cycles.iter().enumerate() {
        writeln!(out, "deadlock {}: none of these can go on", number + 1)?;
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
