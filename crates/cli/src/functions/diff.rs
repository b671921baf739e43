//! `tracewing functions --diff`: what is different in another recording.

use crate::table::{Cell, Column, Table, TableOptions, columns};
use anyhow::Result;
use std::collections::BTreeMap;
use tracewing_analysis::FunctionRow;
use tracewing_units::Duration;

/// A function of either recording.
#[derive(Default)]
pub struct Both<'r> {
    name: &'r str,
    here: Figures,
    there: Figures,
    /// Whether both recordings have all functions that were recorded.
    has_selves: bool,
}

#[derive(Clone, Copy, Default)]
struct Figures {
    total_ns: Duration,
    own_ns: Duration,
    calls: u64,
}

impl From<&FunctionRow> for Figures {
    fn from(row: &FunctionRow) -> Self {
        Figures { total_ns: row.total_ns, own_ns: row.own_ns, calls: row.count }
    }
}

impl Both<'_> {
    fn own(&self, time: Cell) -> Cell {
        if self.has_selves { time } else { Cell::None }
    }

    /// By how much a figure is greater in the other recording.
    fn difference(&self, figure: fn(Figures) -> u64) -> i64 {
        let [there, here] = [self.there, self.here].map(|figures| i128::from(figure(figures)));
        i64::try_from(there - here).unwrap_or(i64::MAX)
    }
}

pub fn columns<'r>() -> Vec<Column<Both<'r>>> {
    columns! { both: Both<'r>;
        period "total" "total_ns" key, "time from begin to end" => Cell::Period(both.here.total_ns);
        period "other" "total_other_ns" high, "total in the other recording" => Cell::Period(both.there.total_ns);
        period "delta" "total_delta_ns" high, "difference in total"
            => Cell::Longer(both.difference(|figures| figures.total_ns.as_ns()));
        period "self" "self_ns" normal, "total without the recorded functions that it called"
            => both.own(Cell::Period(both.here.own_ns));
        period "other" "self_other_ns" normal, "self in the other recording" => both.own(Cell::Period(both.there.own_ns));
        period "delta" "self_delta_ns" normal, "difference in self"
            => both.own(Cell::Longer(both.difference(|figures| figures.own_ns.as_ns())));
        number "calls" "calls" low, "how often it was called" => Cell::Count(both.here.calls);
        number "other" "calls_other" low, "calls in the other recording" => Cell::Count(both.there.calls);
        number "delta" "calls_delta" low, "difference in calls"
            => Cell::Number(both.difference(|figures| figures.calls));
        text "function" "function" key + shrinking, "the function" => both.name.into();
    }
}

/// A line for each function of either, that whose total differs most first.
pub fn table(
    here: &[FunctionRow],
    there: &[FunctionRow],
    has_selves: bool,
    options: &TableOptions,
) -> Result<Table> {
    let mut all: BTreeMap<&str, Both<'_>> = BTreeMap::new();
    for row in here {
        all.entry(&row.name).or_default().here = row.into();
    }
    for row in there {
        all.entry(&row.name).or_default().there = row.into();
    }
    let mut rows: Vec<_> = all.into_iter().map(|(name, both)| Both { name, has_selves, ..both }).collect();
    rows.sort_by_key(|both| std::cmp::Reverse(both.here.total_ns.abs_diff(both.there.total_ns)));
    Ok(options.layout(&columns())?.table(&rows))
}
