//! Rows that are printed as they come: text has columns of fixed widths then, and JSON a line for each row.

use super::fit::{fit, write_aligned, write_titles};
use super::{Cell, Choice, Column, Head, Row, csv_names, csv_row};
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
    /// Of the columns that text has, in characters.
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
        let heads: Vec<_> = columns.iter().map(|column| column.head).collect();
        let full: Vec<_> = heads.iter().map(|head| head.width.max(head.title().width())).collect();
        let limit = if choice.is_fixed() { None } else { terminal::width() };
        Ok(Lines { widths: fit(&heads, &full, limit), columns, heads, format })
    }

    /// Prints what comes before the first row.
    pub fn begin(&self, out: &mut impl Write) -> IoResult<()> {
        match self.format {
            EventFormat::Text => write_titles(out, &self.heads, &self.widths),
            EventFormat::Csv => csv_names(out, &self.heads),
            EventFormat::Json => Ok(()),
        }
    }

    /// Prints a row.
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
