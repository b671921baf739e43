//! `tracewing functions --graph`: what called what.

use super::sorted;
use crate::format::TableFormat;
use crate::table::{Cell, Table, figure, hidden, text};
use tracewing_analysis::CallNode;

/// A line for each place in the call graph, what it calls below it.
pub fn table(graph: &CallNode, format: TableFormat) -> Table {
    let mut table = Table::by_position([
        figure("total", "total_ns"),
        figure("%", "percent"),
        figure("self", "self_ns"),
        figure("calls", "calls"),
        hidden("depth"),
        text("function", "function"),
    ]);
    let mut left: Vec<(usize, &str, &CallNode)> = below(graph, 0).collect();
    while let Some((depth, name, node)) = left.pop() {
        let function = match format {
            TableFormat::Table => format!("{}{name}", "  ".repeat(depth)),
            TableFormat::Json | TableFormat::Csv => name.to_owned(),
        };
        table.push(vec![
            Cell::Period(node.total_ns),
            Cell::Rate(node.total_ns as f64 * 100.0 / graph.total_ns.max(1) as f64),
            Cell::Period(node.own_ns),
            Cell::Count(node.calls),
            Cell::Count(depth as u64),
            Cell::Text(function),
        ]);
        left.extend(below(node, depth + 1));
    }
    table
}

/// What is to come next is last.
fn below(node: &CallNode, depth: usize) -> impl Iterator<Item = (usize, &str, &CallNode)> {
    sorted(node).into_iter().rev().map(move |(name, node)| (depth, name, node))
}
