//! What of a table is printed, as its options say: which columns, which rows, and in what order.

use super::column::find;
use super::{Cell, Choice, Column, First, Sort, Table, TableOptions, heads};
use crate::format::TableFormat;
use crate::terminal;
use anyhow::Result;
use std::borrow::Borrow;

/// The columns of a table that are printed, and the order of its rows.
#[derive(Debug)]
pub struct Layout<R> {
    columns: Vec<Column<R>>,
    sort: Option<Column<R>>,
    rows: usize,
    format: TableFormat,
    /// Width of the terminal that it must fit.
    limit: Option<usize>,
    /// Whether the command has the options of [`Choice`].
    has_choice: bool,
}

impl<R> Layout<R> {
    /// Chooses from all columns of a table.
    ///
    /// # Errors
    /// There is no column of a given name.
    pub fn new(
        all: &[Column<R>],
        sort: &Sort,
        first: First,
        choice: &Choice,
        format: TableFormat,
    ) -> Result<Self> {
        let heads = heads(all);
        let by = sort.sort.as_ref().map(|name| find(&heads, name, "to sort by")).transpose()?;
        let columns = choice.of(all, format)?;
        Ok(Self::with(columns, by.map(|place| all[place]), first, choice, format))
    }

    /// The same of one of several tables, which may lack columns that are chosen.
    pub fn of_part(
        all: &[Column<R>],
        sort: &Sort,
        first: First,
        choice: &Choice,
        format: TableFormat,
    ) -> Self {
        let heads = heads(all);
        let by = sort.sort.as_ref().and_then(|name| find(&heads, name, "").ok());
        let columns = choice.of_part(all, format);
        Self::with(columns, by.map(|place| all[place]), first, choice, format)
    }

    fn with(
        columns: Vec<Column<R>>,
        sort: Option<Column<R>>,
        first: First,
        choice: &Choice,
        format: TableFormat,
    ) -> Self {
        let limit = if choice.is_fixed() { None } else { terminal::width() };
        Layout { columns, sort, rows: first.rows(), format, limit, has_choice: true }
    }

    /// The columns of a table that has no options.
    pub fn all(columns: &[Column<R>], format: TableFormat) -> Self {
        let is_shown = |column: &&Column<R>| column.head.is_shown(format);
        let columns = columns.iter().filter(is_shown).copied().collect();
        let limit = terminal::width();
        Layout { columns, sort: None, rows: usize::MAX, format, limit, has_choice: false }
    }

    /// The same for output of another width than that of standard output at the beginning.
    pub fn within(self, limit: Option<usize>) -> Self {
        Layout { limit, ..self }
    }

    /// The chosen rows in the chosen order, with the chosen columns.
    pub fn table<'r>(&self, rows: impl IntoIterator<Item = &'r R>) -> Table
    where
        R: 'r,
    {
        self.as_they_are(self.arranged(rows))
    }

    /// The chosen rows in the chosen order.
    pub fn arranged<B: Borrow<R>>(&self, rows: impl IntoIterator<Item = B>) -> Vec<B> {
        self.arranged_with(rows, |_| false)
    }

    /// The same, with all rows that the maximum number of rows does not apply to (`is_exempt`).
    pub fn arranged_with<B: Borrow<R>>(
        &self,
        rows: impl IntoIterator<Item = B>,
        is_exempt: impl Fn(&R) -> bool,
    ) -> Vec<B> {
        let mut rows: Vec<(Cell, B)> =
            rows.into_iter().map(|row| (self.sort_key(row.borrow()), row)).collect();
        if self.sort.is_some() {
            rows.sort_by(|(a, _), (b, _)| a.compare(b));
        }
        let mut room = self.rows;
        rows.retain(|(_, row)| {
            let is_kept = is_exempt(row.borrow());
            let has_room = is_kept || room > 0;
            room -= usize::from(!is_kept && has_room);
            has_room
        });
        rows.into_iter().map(|(_, row)| row).collect()
    }

    /// How many rows are printed at most.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// As many rows as are printed, of those that come with the table and are in an order of their own.
    pub fn first<T>(&self, rows: impl IntoIterator<Item = T>) -> Vec<T> {
        rows.into_iter().take(self.rows).collect()
    }

    /// All rows in their own order, with the chosen columns.
    pub fn as_they_are<B: Borrow<R>>(&self, rows: impl IntoIterator<Item = B>) -> Table {
        let is_text = self.format == TableFormat::Table;
        let cells = |row: B| self.columns.iter().map(|column| column.cell(row.borrow(), is_text)).collect();
        let heads = self.columns.iter().map(|column| column.head).collect();
        Table::new(heads, rows.into_iter().map(cells).collect(), self.limit, self.has_choice)
    }

    fn sort_key(&self, row: &R) -> Cell {
        self.sort.map_or(Cell::None, |column| column.cell(row, false))
    }
}

impl TableOptions {
    /// Chooses from all columns of a table.
    ///
    /// # Errors
    /// There is no column of a given name.
    pub fn layout<R>(&self, all: &[Column<R>]) -> Result<Layout<R>> {
        Layout::new(all, &self.sort, self.first, &self.choice, self.format())
    }

    /// Chooses from all columns of one of several tables. Columns that it lacks are those of another table,
    /// as [`check`] has seen.
    pub fn layout_of_part<R>(&self, all: &[Column<R>]) -> Layout<R> {
        Layout::of_part(all, &self.sort, self.first, &self.choice, self.format())
    }
}
