//! Rows that are printed as they come: text then has columns of fixed widths, and JSON a line for each row.

use super::fit::{fit, write_aligned, write_titles};
use super::{Cell, Choice, Column, Head, Row, csv_names, csv_row, say_left_out};
use crate::format::EventFormat;
use crate::terminal;
use anyhow::Result;
use std::io::{Result as IoResult, Write};
use unicode_width::UnicodeWidthStr;

/// Prints rows of `R`.
#[derive(Debug)]
pub struct Lines<R> {
    columns: Vec<Column<R>>,
    heads: Vec<Head>,
    /// Of the columns that text has, in characters; `None` for those that the terminal is too narrow for.
    widths: Vec<Option<usize>>,
    format: EventFormat,
}

impl<R> Lines<R> {
    /// Chooses from all columns.
    ///
    /// # Errors
    /// There is no column of a given name.
    pub fn new(all: &[Column<R>], choice: &Choice, format: EventFormat) -> Result<Self> {
        let columns = choice.of(all, format.of_table())?;
        let mut heads: Vec<_> = columns.iter().map(|column| column.head).collect();
        let limit = if choice.is_fixed() { None } else { terminal::width() };
        let full: Vec<_> = heads.iter().map(|head| full_width(head, limit)).collect();
        let widths = fit(&heads, &full, limit);
        // The widths were set before any cell is known: without a limit, they cut none.
        heads.iter_mut().for_each(|head| head.can_shrink &= limit.is_some());
        Ok(Lines { widths, columns, heads, format })
    }

    /// Prints what comes before the first row.
    pub fn begin(&self, out: &mut impl Write) -> IoResult<()> {
        match self.format {
            EventFormat::Text => write_titles(out, &self.heads, &self.widths),
            EventFormat::Csv => csv_names(out, &self.heads),
            EventFormat::Json => Ok(()),
        }
    }

    /// Prints what comes after the last row: which columns the terminal is too narrow for.
    pub fn end(&self, out: &mut impl Write) -> IoResult<()> {
        let hidden = self.heads.iter().zip(&self.widths).filter(|(_, width)| width.is_none());
        let hidden: Vec<_> = hidden.map(|(head, _)| head.header).collect();
        match self.format {
            EventFormat::Text => say_left_out(out, &hidden, true),
            EventFormat::Csv | EventFormat::Json => Ok(()),
        }
    }

    pub fn row(&self, out: &mut impl Write, row: &R) -> IoResult<()> {
        let is_text = self.format == EventFormat::Text;
        let cells: Vec<Cell> = self.columns.iter().map(|column| column.cell(row, is_text)).collect();
        match self.format {
            EventFormat::Text => write_aligned(out, &self.heads, &self.widths, &cells),
            EventFormat::Csv => csv_row(out, &cells),
            EventFormat::Json => {
                serde_json::to_writer(&mut *out, &Row { heads: &self.heads, cells: &cells })?;
                writeln!(out)
            }
        }
    }
}

/// The width that a column has if there is room, in characters. A column that can shrink and has no width of
/// its own takes all the room that the others leave.
fn full_width(head: &Head, limit: Option<usize>) -> usize {
    let title = head.title().width();
    match limit {
        Some(limit) if head.can_shrink && head.width == 0 => limit.max(title),
        _ => head.width.max(title),
    }
}
