//! `tracewing functions --graph`: what called what.

use super::sorted;
use crate::table::{Cell, Column, Table, TableOptions, columns};
use anyhow::Result;
use tracewing_analysis::CallNode;
use tracewing_units::Duration;

/// A place in the call graph.
pub struct Place<'g> {
    depth: usize,
    name: &'g str,
    node: &'g CallNode,
    /// Time of the whole graph.
    whole_ns: Duration,
    /// Whether all recorded functions are in it.
    has_selves: bool,
}

pub fn columns<'g>() -> Vec<Column<Place<'g>>> {
    columns! { place: Place<'g>;
        period "total" "total_ns" key, "time from begin to end" => Cell::Period(place.node.total_ns);
        percent "" "percent" high, "share of the whole time"
            => Cell::Rate(place.node.total_ns.percent_of(place.whole_ns.max(Duration::from_ns(1))));
        period "self" "self_ns" high, "total without the recorded functions that it called"
            => Cell::period(place.has_selves.then_some(place.node.own_ns));
        number "calls" "calls" normal, "how often it was called from there" => Cell::Count(place.node.calls);
        number "depth" "depth" extra, "number of functions around it" => Cell::Count(place.depth as u64);
        text "function" "function" key + shrinking, "the function; in text, below its caller"
            => place.name.into(), in_text: format!("{}{}", "  ".repeat(place.depth), place.name).into();
    }
}

/// A line for each place in the call graph, what it calls below it.
pub fn table(graph: &CallNode, has_selves: bool, options: &TableOptions) -> Result<Table> {
    let mut places = Vec::new();
    let mut left: Vec<(usize, &str, &CallNode)> = below(graph, 0).collect();
    while let Some((depth, name, node)) = left.pop() {
        places.push(Place { depth, name, node, whole_ns: graph.total_ns, has_selves });
        left.extend(below(node, depth + 1));
    }
    Ok(options.layout(&columns())?.table(&places))
}

/// A stack: the next place is the last one.
fn below(node: &CallNode, depth: usize) -> impl Iterator<Item = (usize, &str, &CallNode)> {
    sorted(node).into_iter().rev().map(move |(name, node)| (depth, name, node))
}
