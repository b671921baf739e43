//! `tracewing functions --diff`: what is different in another recording.

use crate::table::{Cell, Table, figure, text};
use std::collections::BTreeMap;
use tracewing_analysis::FunctionRow;

/// A line for each function of either, that whose total differs most first.
pub fn table(before: &[FunctionRow], after: &[FunctionRow]) -> Table {
    let mut all: BTreeMap<&str, [Option<&FunctionRow>; 2]> = BTreeMap::new();
    for (place, rows) in [before, after].into_iter().enumerate() {
        for row in rows {
            all.entry(&row.name).or_default()[place] = Some(row);
        }
    }
    let mut table = Table::by_position([
        figure("total", "total_ns"),
        figure("there", "total_there_ns"),
        figure("difference", "total_difference_ns"),
        figure("self", "self_ns"),
        figure("there", "self_there_ns"),
        figure("difference", "self_difference_ns"),
        figure("calls", "calls"),
        figure("there", "calls_there"),
        figure("difference", "calls_difference"),
        text("function", "function"),
    ]);
    let parts: [fn(&FunctionRow) -> u64; 3] =
        [|row| row.total_ns, |row| row.own.sum_ns, |row| row.calls.count];
    let mut rows: Vec<_> = all
        .into_iter()
        .map(|(name, rows)| (name, parts.map(|part| rows.map(|row| row.map_or(0, part)))))
        .collect();
    rows.sort_by_key(|(_, [[before, after], ..])| std::cmp::Reverse(before.abs_diff(*after)));
    for (name, [total, own, calls]) in rows {
        let times = |[before, after]: [u64; 2]| {
            [Cell::Period(before), Cell::Period(after), Cell::Longer(difference(before, after))]
        };
        let mut cells = Vec::from(times(total));
        cells.extend(times(own));
        cells.extend([
            Cell::Count(calls[0]),
            Cell::Count(calls[1]),
            Cell::Number(difference(calls[0], calls[1])),
            name.into(),
        ]);
        table.push(cells);
    }
    table
}

fn difference(before: u64, after: u64) -> i64 {
    i64::try_from(i128::from(after) - i128::from(before)).unwrap_or(i64::MAX)
}
