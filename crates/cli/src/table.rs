//! Rows with named columns, printed as a table, as CSV, or as JSON.
//!
//! A column has one name for people and one for programs; a figure has its unit in the latter. Tables for people print times in
//! milliseconds, the others in nanoseconds.

mod cell;

pub use cell::{Cell, Column, figure, hidden, milliseconds, period, text};

use crate::format::{EventFormat, TableFormat};
use anyhow::{Context, Result};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use std::io::{BufWriter, Result as IoResult, Write};
use std::iter::repeat_n;
use unicode_width::UnicodeWidthStr;

/// Which rows of a table come first, and how many of them.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Order {
    /// Sort by this column: the largest first, texts by their letters
    #[arg(long, value_name = "COLUMN")]
    sort: Option<String>,

    /// Print only the first N rows
    #[arg(short = 'n', long = "count", value_name = "N")]
    rows: Option<usize>,
}

impl Order {
    /// All rows, by this column if one is given.
    pub fn by(sort: Option<String>) -> Self {
        Order { sort, rows: None }
    }
}

/// Rows under named columns.
#[derive(Debug)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

impl Order {
    /// How many rows are wanted, if not all.
    pub fn rows(&self) -> Option<usize> {
        self.rows
    }
}

impl Table {
    /// A table without rows.
    pub fn new(columns: impl Into<Vec<Column>>) -> Self {
        Self { columns: columns.into(), rows: Vec::new() }
    }

    /// Adds a row: a cell for each column.
    pub fn push(&mut self, row: Vec<Cell>) {
        debug_assert_eq!(row.len(), self.columns.len(), "a row has a cell for each column");
        self.rows.push(row);
    }

    /// The cells of its rows.
    pub fn into_rows(self) -> Vec<Vec<Cell>> {
        self.rows
    }

    /// Leaves out all columns but those of these names.
    pub fn keep(&mut self, names: &[&str]) {
        let kept: Vec<bool> = self.columns.iter().map(|column| names.contains(&column.name)).collect();
        let mut places = kept.iter();
        self.columns.retain(|_| places.next() == Some(&true));
        for row in &mut self.rows {
            let mut places = kept.iter();
            row.retain(|_| places.next() == Some(&true));
        }
    }

    /// Brings the rows into the order that was asked for, and leaves out the rest.
    ///
    /// # Errors
    /// There is no such column.
    pub fn arrange(&mut self, order: &Order) -> Result<()> {
        if let Some(by) = &order.sort {
            let called = |column: &Column| column.name == by || column.title == Some(by);
            let place = self.columns.iter().position(called).with_context(|| {
                let names = self.columns.iter().map(|column| column.title.unwrap_or(column.name));
                let names: Vec<_> = names.collect();
                format!("there is no column `{by}` to sort by, but these: {}", names.join(", "))
            })?;
            self.rows.sort_by(|a, b| a[place].compare(&b[place]));
        }
        self.rows.truncate(order.rows.unwrap_or(usize::MAX));
        Ok(())
    }

    /// Prints a table for people.
    pub fn print(&self, out: &mut impl Write) -> IoResult<()> {
        let mut out = BufWriter::new(out);
        let mut widths: Vec<usize> =
            self.columns.iter().map(|column| column.title.unwrap_or_default().width()).collect();
        for row in &self.rows {
            for ((width, column), cell) in widths.iter_mut().zip(&self.columns).zip(row) {
                if column.title.is_some() {
                    *width = cell.width().max(*width);
                }
            }
        }
        write_aligned(&mut out, &self.columns, &widths, &titles(&self.columns))?;
        for row in &self.rows {
            write_aligned(&mut out, &self.columns, &widths, row)?;
        }
        out.flush()
    }

    /// Prints a line of names, and a line for each row.
    pub fn csv(&self, out: &mut impl Write) -> IoResult<()> {
        let mut out = BufWriter::new(out);
        csv_names(&mut out, &self.columns)?;
        self.rows.iter().try_for_each(|row| csv_row(&mut out, row))?;
        out.flush()
    }

    /// Prints in the format that was asked for: a table with `totals` below it, CSV, or one line of JSON, an object with the
    /// rows as `name` and with `members`.
    pub fn write<W: Write>(
        &self,
        out: &mut W,
        format: TableFormat,
        (name, members): (&str, &[(&str, Cell)]),
        totals: impl FnOnce(&mut W) -> IoResult<()>,
    ) -> IoResult<()> {
        match format {
            TableFormat::Table => {
                self.print(out)?;
                totals(out)
            }
            TableFormat::Csv => self.csv(out),
            TableFormat::Json => {
                let mut out = BufWriter::new(out);
                serde_json::to_writer(&mut out, &Document { table: self, name, members })?;
                writeln!(out)?;
                out.flush()
            }
        }
    }
}

impl Serialize for Table {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut rows = serializer.serialize_seq(Some(self.rows.len()))?;
        for cells in &self.rows {
            rows.serialize_element(&Row { columns: &self.columns, cells })?;
        }
        rows.end()
    }
}

struct Row<'t> {
    columns: &'t [Column],
    cells: &'t [Cell],
}

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.columns.iter().map(|column| column.name).zip(self.cells))
    }
}

struct Document<'t> {
    table: &'t Table,
    name: &'t str,
    members: &'t [(&'t str, Cell)],
}

impl Serialize for Document<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1 + self.members.len()))?;
        map.serialize_entry(self.name, self.table)?;
        for (name, value) in self.members {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// Prints rows as they come: a table for people has columns of fixed widths then, and JSON is a line for each row.
#[derive(Debug)]
pub struct Lines<'c> {
    columns: &'c [Column],
    /// Of the columns, in characters.
    widths: &'c [usize],
    format: EventFormat,
}

impl<'c> Lines<'c> {
    /// Prints what comes before the first row.
    pub fn begin(
        out: &mut impl Write,
        columns: &'c [Column],
        widths: &'c [usize],
        format: EventFormat,
    ) -> IoResult<Self> {
        let lines = Lines { columns, widths, format };
        match format {
            EventFormat::Text => {
                write_aligned(out, columns, widths, &titles(columns))?;
            }
            EventFormat::Csv => csv_names(out, columns)?,
            EventFormat::Json => {}
        }
        Ok(lines)
    }

    /// Prints a row: a cell for each column.
    pub fn row(&self, out: &mut impl Write, cells: &[Cell]) -> IoResult<()> {
        match self.format {
            EventFormat::Text => write_aligned(out, self.columns, self.widths, cells),
            EventFormat::Csv => csv_row(out, cells),
            EventFormat::Json => {
                serde_json::to_writer(&mut *out, &Row { columns: self.columns, cells })?;
                writeln!(out)
            }
        }
    }
}

fn titles(columns: &[Column]) -> Vec<Cell> {
    columns.iter().map(|column| column.title.unwrap_or_default().into()).collect()
}

/// Prints a line of cells, figures to the right, two spaces in between.
fn write_aligned(out: &mut impl Write, columns: &[Column], widths: &[usize], cells: &[Cell]) -> IoResult<()> {
    let mut line = String::new();
    for ((column, width), cell) in columns.iter().zip(widths).zip(cells) {
        if column.title.is_none() {
            continue;
        }
        let blanks = repeat_n(' ', width.saturating_sub(cell.width()));
        match column.figures {
            true => {
                line.extend(blanks);
                cell.show(&mut line);
            }
            false => {
                cell.show(&mut line);
                line.extend(blanks);
            }
        }
        line += "  ";
    }
    writeln!(out, "{}", line.trim_end())
}

fn csv_names(out: &mut impl Write, columns: &[Column]) -> IoResult<()> {
    let names: Vec<_> = columns.iter().map(|column| column.name).collect();
    writeln!(out, "{}", names.join(","))
}

fn csv_row(out: &mut impl Write, cells: &[Cell]) -> IoResult<()> {
    for (place, cell) in cells.iter().enumerate() {
        if place > 0 {
            out.write_all(b",")?;
        }
        cell.write_csv(out)?;
    }
    writeln!(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracewing_trace::Zone;

    fn table() -> Table {
        let columns = [
            figure("id", "id"),
            text("name", "name"),
            figure("time", "time_ns"),
            hidden("more_ns"),
            text("on", "on"),
        ];
        let mut table = Table::new(columns);
        let parts = Cell::Parts(vec![(Some("read".to_owned()), 7), (None, 2)]);
        table.push(vec![Cell::Number(-1), "b, \"c\"".into(), Cell::Ns(1_234_567), Cell::Ns(1), parts]);
        table.push(vec![
            Cell::None,
            "a\u{1b}".into(),
            Cell::Ns(22_000_000),
            Cell::Ns(2),
            Cell::Parts(Vec::new()),
        ]);
        table
    }

    fn written(table: &Table, format: TableFormat) -> String {
        let mut out = Vec::new();
        let document = ("rows", &[("count", Cell::Count(2))][..]);
        table.write(&mut out, format, document, |out| writeln!(out, "two")).expect("memory takes all");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn each_format_has_all_that_it_shows() {
        let table = table();
        let shown = "id  name       time  on\n-1  b, \"c\"    1.234  read\n -  a\\u{1b}  22.000\ntwo\n";
        assert_eq!(written(&table, TableFormat::Table), shown);
        let csv =
            "id,name,time_ns,more_ns,on\n-1,\"b, \"\"c\"\"\",1234567,1,read=7 ?=2\n,a\u{1b},22000000,2,\n";
        assert_eq!(written(&table, TableFormat::Csv), csv);
        let json: serde_json::Value =
            serde_json::from_str(&written(&table, TableFormat::Json)).expect("JSON");
        let expected = serde_json::json!({
            "rows": [
                { "id": -1, "name": "b, \"c\"", "time_ns": 1_234_567, "more_ns": 1,
                  "on": [{ "on": "read", "ns": 7 }, { "on": null, "ns": 2 }] },
                { "id": null, "name": "a\u{1b}", "time_ns": 22_000_000, "more_ns": 2, "on": [] },
            ],
            "count": 2,
        });
        assert_eq!(json, expected);
    }

    #[test]
    fn a_cell_is_as_wide_as_what_is_shown() {
        for number in [0, 1, 9, 10, 999_999, 1_000_000, 9_999_999, 10_000_000, u64::MAX] {
            let signed = number as i64;
            for cell in [
                Cell::None,
                Cell::Count(number),
                Cell::Ns(number),
                Cell::Number(signed),
                Cell::Number(-signed),
                Cell::Time(signed, Zone::Utc),
            ] {
                assert_eq!(cell.width(), cell.shown().len(), "{cell:?}");
                let mut line = String::new();
                cell.show(&mut line);
                assert_eq!(line, cell.shown());
            }
        }
        assert_eq!(Cell::Number(i64::MIN).width(), 20);
    }

    #[test]
    fn a_period_has_the_unit_that_suits_it() {
        let cases = [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_234, "1.23 µs"),
            (38_140_000, "38.1 ms"),
            (123_456_000, "123 ms"),
        ];
        for (ns, shown) in
            cases.into_iter().chain([(2_000_000_000, "2.00 s"), (86_400_000_000_000, "86400 s")])
        {
            assert_eq!(period(ns), shown);
        }
    }

    #[test]
    fn keeps_columns_by_name() {
        let mut table = table();
        table.keep(&["time_ns", "id", "other"]);
        assert_eq!(written(&table, TableFormat::Csv), "id,time_ns\n-1,1234567\n,22000000\n");
    }

    #[test]
    fn sorts_figures_down_and_texts_up() {
        let first = |sort: &str| {
            let mut table = table();
            table
                .arrange(&Order { sort: Some(sort.to_owned()), rows: Some(1) })
                .map(|()| table.rows[0][0].clone())
        };
        assert_eq!(first("time").unwrap(), Cell::None);
        assert_eq!(first("time_ns").unwrap(), Cell::None);
        assert_eq!(first("on").unwrap(), Cell::Number(-1));
        assert_eq!(first("name").unwrap(), Cell::None);
        assert!(first("names").unwrap_err().to_string().ends_with("these: id, name, time, more_ns, on"));
    }
}
