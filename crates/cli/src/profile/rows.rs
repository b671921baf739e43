//! Lines of `tracewing profile`: functions, files or threads with their samples; call trees; counters.

use super::By;
use crate::table::{Cell, Column, columns};
use tracewing_analysis::profile::{FunctionKind, Row, Shown, TreeLine};
use tracewing_units::Duration;

/// A line of a histogram.
pub struct Line<'f> {
    row: &'f Row,
    found: &'f Shown,
}

impl Line<'_> {
    fn time(&self) -> Cell {
        let time = Duration::from_ns(self.row.period);
        Cell::period(has_possible_time(self.row, self.found).then_some(time))
    }
}

/// Whether a row's samples can stand for its time: each of them for no more than what was analysed.
pub fn has_possible_time(row: &Row, found: &Shown) -> bool {
    let samples = found.samples();
    let most = u128::from(row.own) * u128::from(samples.duration_ns.as_ns());
    samples.trigger == "cycles" || u128::from(row.period) <= most
}

pub fn lines<'f>(rows: &'f [Row], found: &'f Shown) -> Vec<Line<'f>> {
    rows.iter().map(|row| Line { row, found }).collect()
}

/// Columns of histograms in any recording: samples stand for time or for cycles.
pub fn columns<'f>(by: By) -> Vec<Column<Line<'f>>> {
    let mut columns = columns! { line: Line<'f>;
        number "process" "process" extra, "process id" => line.row.process.into();
        text "name" "name" extra, "name of the process" => line.row.process_name.as_str().into();
        text "program" "program" extra, "file that the process runs"
            => line.found.program(line.row.process).map_or(Cell::None, Cell::from);
        number "self" "self_samples" key, "samples in it" => Cell::Count(line.row.own);
        percent "self" "self_percent" high, "share of the process's samples that are in it" => percent(line.row.own, line.row.of);
        number "total" "total_samples" high, "samples in it or in what it called" => Cell::Count(line.row.total);
        percent "total" "total_percent" normal, "share of the process's samples that are in it or in what it called"
            => percent(line.row.total, line.row.of);
        period "time" "time_ns" high, "time that its own samples represent" => line.time();
        number "cycles" "cycles" high, "cycles that its own samples represent, if the samples count cycles"
            => Cell::Count(line.row.period);
    };
    columns.extend(match by {
        By::Function => vec![function(), kind(), object().low()],
        By::Object => vec![object().key()],
        By::Thread => columns! { line: Line<'f>;
            number "thread" "tid" key, "thread id" => line.row.tid.into();
            text "thread-name" "thread_name" high + shrinking, "name of the thread"
                => Cell::Text(line.found.thread_name(line.row.tid));
        },
    });
    columns
}

/// The columns of a histogram in a recording.
pub fn columns_of<'f>(by: By, found: &Shown) -> Vec<Column<Line<'f>>> {
    let other = if found.samples().trigger == "cycles" { "time_ns" } else { "cycles" };
    let mut columns = columns(by);
    columns.retain(|column| column.head.name != other);
    columns
}

fn function<'f>() -> Column<Line<'f>> {
    let name = |line: &Line<'f>| Cell::Text(line.row.function.shown());
    Column::text("function", "function", "the function, or the file and the offset in it", name)
        .key()
        .shrinking()
}

const KIND: &str = "whole: it contains the code; inlined: the compiler put it into its caller; near: the code has \
                    no symbol, and this is the last function before it";

fn word(kind: FunctionKind) -> Cell {
    Cell::from(match kind {
        FunctionKind::Whole => "whole",
        FunctionKind::Inlined => "inlined",
        FunctionKind::Near => "near",
    })
}

fn kind<'f>() -> Column<Line<'f>> {
    Column::text("kind", "kind", KIND, |line: &Line<'f>| word(line.row.function.kind)).extra()
}

/// In text the file's name, in JSON and CSV with its path.
fn object<'f>() -> Column<Line<'f>> {
    let path = |line: &Line<'f>| line.row.function.object.as_str().into();
    Column::text("object", "object", "file that it is in, or the kernel; JSON and CSV have its path", path)
        .in_text(|line| line.row.function.object_name().into())
}

pub fn tree_columns() -> Vec<Column<TreeLine>> {
    columns! { line: TreeLine;
        number "process" "process" normal, "process id" => line.process.into();
        text "name" "name" low + shrinking, "name of the process" => line.process_name.as_str().into();
        number "total" "total_samples" key, "samples in it or in what it called" => Cell::Count(line.total);
        percent "total" "total_percent" high, "share of the process's samples that are in it or in what it called"
            => percent(line.total, line.of);
        number "self" "self_samples" high, "samples in it" => Cell::Count(line.own);
        number "depth" "depth" extra, "distance from the tree's root" => Cell::Count(line.depth as u64);
        text "function" "function" key, "the function; in text, indented by its depth" => Cell::Text(line.function.shown()),
            in_text: Cell::Text(format!("{}{}", "  ".repeat(line.depth), line.function.shown()));
        text "kind" "kind" extra, KIND => word(line.function.kind);
        text "object" "object" extra, "file that it is in, or the kernel" => line.function.object.as_str().into();
    }
}

pub fn counter_columns() -> Vec<Column<(String, Option<u64>)>> {
    columns! { counter: (String, Option<u64>);
        text "counter" "counter" key, "what is counted" => counter.0.as_str().into();
        number "value" "value" key, "its value; - if the values of the counter contradict each other" => Cell::count(counter.1);
    }
}

fn percent(part: u64, of: u64) -> Cell {
    Cell::Rate(part as f64 * 100.0 / of.max(1) as f64)
}
