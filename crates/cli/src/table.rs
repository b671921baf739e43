//! Rows with named columns, printed as a table, as CSV, or as JSON.
//!
//! | module | what |
//! |---|---|
//! | `column` | a column: name, header, unit, meaning, importance, and its cell for a row |
//! | `cell` | a value, and how each format shows it |
//! | `options` | `--columns`, `--wide`, `--sort`, `-n` |
//! | `layout` | the columns and rows that they choose |
//! | `fit` | what fits a terminal |
//! | `lines` | rows that are printed as they come |
//! | `reference` | the columns in the help, and in docs/reference/columns.md |

mod cell;
mod column;
mod fit;
mod layout;
mod lines;
mod options;
pub mod reference;
#[cfg(test)]
mod tests;

pub use cell::{Cell, bytes, milliseconds, number, period, seconds};
pub(crate) use column::columns;
pub use column::{Column, Head, heads};
pub use layout::Layout;
pub use lines::Lines;
pub use options::{Choice, First, Sort, TableOptions, check};

use crate::format::TableFormat;
use crate::output::print_note;
use fit::{fit, write_aligned, write_titles};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use std::borrow::Borrow;
use std::io::{BufWriter, Result as IoResult, Write};
use tracewing_units::Duration;
use unicode_width::UnicodeWidthStr;

/// Rows below the headers of their columns.
#[derive(Debug)]
pub struct Table {
    heads: Vec<Head>,
    rows: Vec<Vec<Cell>>,
    /// Width of the terminal that it must fit.
    limit: Option<usize>,
    /// Whether the command has the options of [`Choice`].
    has_choice: bool,
}

impl Table {
    /// Sums of times that no number holds are not known.
    fn new(heads: Vec<Head>, mut rows: Vec<Vec<Cell>>, limit: Option<usize>, has_choice: bool) -> Self {
        let is_too_long =
            |cell: &&mut Cell| matches!(cell, Cell::Ns(Duration::MAX) | Cell::Period(Duration::MAX));
        rows.iter_mut().flatten().filter(is_too_long).for_each(|cell| *cell = Cell::None);
        Self { heads, rows, limit, has_choice }
    }

    /// Prints a table for people. Below it are the columns for which the terminal is too narrow.
    pub fn print(&self, out: &mut impl Write) -> IoResult<()> {
        let mut out = BufWriter::new(out);
        let mut full: Vec<usize> =
            self.heads.iter().map(|head| head.width.max(head.title().width())).collect();
        for row in &self.rows {
            for (width, cell) in full.iter_mut().zip(row) {
                *width = cell.width().max(*width);
            }
        }
        let widths = fit(&self.heads, &full, self.limit);
        write_titles(&mut out, &self.heads, &widths)?;
        for row in &self.rows {
            write_aligned(&mut out, &self.heads, &widths, row)?;
        }
        let is_out = |(head, width): (&Head, &Option<usize>)| width.is_none().then_some(head.header);
        let out_of_it = self.heads.iter().zip(&widths).filter_map(is_out).filter(|header| !header.is_empty());
        say_left_out(&mut out, &out_of_it.collect::<Vec<_>>(), self.has_choice)?;
        out.flush()
    }

    /// Prints a line of names, and a line for each row.
    pub fn csv(&self, out: &mut impl Write) -> IoResult<()> {
        let mut out = BufWriter::new(out);
        csv_names(&mut out, &self.heads)?;
        self.rows.iter().try_for_each(|row| csv_row(&mut out, row))?;
        out.flush()
    }

    /// Prints in the format that was asked for: a table with `totals` below it, CSV, or one line of JSON, an
    /// object with the rows as `name` and with `members`.
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
            TableFormat::Json => write_json(out, &[(name, self)], members),
        }
    }

    /// The columns' names and cells of its first row.
    pub fn into_members(self) -> impl Iterator<Item = (&'static str, Cell)> {
        let names = self.heads.into_iter().map(|head| head.name);
        names.zip(self.rows.into_iter().next().unwrap_or_default())
    }

    /// Whether it has no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Whether it has no column: none of those that are chosen.
    pub fn is_void(&self) -> bool {
        self.heads.is_empty()
    }
}

/// Prints one line of JSON: an object with each table's rows as its name, and with `members`.
pub fn write_json(
    out: &mut impl Write,
    tables: &[(&str, impl Borrow<Table>)],
    members: &[(&str, impl Serialize)],
) -> IoResult<()> {
    let mut out = BufWriter::new(out);
    serde_json::to_writer(&mut out, &Document { tables, members })?;
    writeln!(out)?;
    out.flush()
}

/// Says which columns the terminal was too narrow for.
fn say_left_out(out: &mut impl Write, headers: &[&str], has_choice: bool) -> IoResult<()> {
    let hint = if has_choice { "--wide shows all, --columns selects" } else { "COLUMNS=200 shows more" };
    match headers {
        [] => Ok(()),
        headers => print_note(out, &format!("Hidden columns: {} ({hint})", headers.join(", "))),
    }
}

impl Serialize for Table {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut rows = serializer.serialize_seq(Some(self.rows.len()))?;
        for cells in &self.rows {
            rows.serialize_element(&Row { heads: &self.heads, cells })?;
        }
        rows.end()
    }
}

struct Row<'t> {
    heads: &'t [Head],
    cells: &'t [Cell],
}

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.heads.iter().map(|head| head.name).zip(self.cells))
    }
}

struct Document<'t, T, M> {
    tables: &'t [(&'t str, T)],
    members: &'t [(&'t str, M)],
}

impl<T: Borrow<Table>, M: Serialize> Serialize for Document<'_, T, M> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.tables.len() + self.members.len()))?;
        for (name, table) in self.tables.iter().map(|(name, table)| (name, table.borrow())) {
            if !table.is_void() {
                map.serialize_entry(name, table)?;
            }
        }
        for (name, value) in self.members {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

fn csv_names(out: &mut impl Write, heads: &[Head]) -> IoResult<()> {
    let names: Vec<_> = heads.iter().map(|head| head.name).collect();
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
