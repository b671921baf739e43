//! What of a table is printed: options for its columns, its order and its form, and the rows that come of
//! them.

use super::{Cell, Column, Head, Table};
use crate::format::TableFormat;
use crate::screen;
use anyhow::{Context, Result};
use std::borrow::Borrow;

/// The options of each command that prints one table.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct TableOptions {
    #[command(flatten)]
    pub order: Order,

    #[command(flatten)]
    pub choice: Choice,

    /// How to print
    #[arg(long, value_enum, default_value_t)]
    pub format: TableFormat,
}

/// Which rows of a table come first, and how many of them.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Order {
    /// Sort by this column: the largest first, texts alphabetically
    #[arg(long, value_name = "COLUMN")]
    pub sort: Option<String>,

    /// Print only the first N rows
    #[arg(short = 'n', long = "count", value_name = "N")]
    pub rows: Option<usize>,
}

/// Which columns are printed.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Choice {
    /// Print these columns, in this order; several with commas
    #[arg(long, value_name = "COLUMN", value_delimiter = ',')]
    pub columns: Vec<String>,

    /// Print all columns as text, however narrow the terminal is
    #[arg(long, conflicts_with = "columns")]
    pub wide: bool,
}

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

impl TableOptions {
    /// Chooses from all columns of a table.
    ///
    /// # Errors
    /// There is no column of a given name.
    pub fn layout<R>(&self, all: &[Column<R>]) -> Result<Layout<R>> {
        Layout::new(all, &self.order, &self.choice, self.format)
    }
}

impl Choice {
    /// The columns to print, of all that there are.
    ///
    /// # Errors
    /// There is no column of a given name.
    pub fn of<R>(&self, all: &[Column<R>], format: TableFormat) -> Result<Vec<Column<R>>> {
        let is_wide = self.wide && format == TableFormat::Table;
        let is_shown = |column: &&Column<R>| is_wide || column.head.is_shown(format);
        match &self.columns[..] {
            [] => Ok(all.iter().filter(is_shown).copied().collect()),
            names => names.iter().map(|name| find(all, name, "to print")).collect(),
        }
    }

    /// Whether the columns are to be printed whatever the terminal's width.
    pub fn is_fixed(&self) -> bool {
        self.wide || !self.columns.is_empty()
    }
}

impl<R> Layout<R> {
    /// Chooses from all columns of a table.
    ///
    /// # Errors
    /// There is no column of a given name.
    pub fn new(all: &[Column<R>], order: &Order, choice: &Choice, format: TableFormat) -> Result<Self> {
        let sort = order.sort.as_ref().map(|name| find(all, name, "to sort by")).transpose()?;
        let columns = choice.of(all, format)?;
        let limit = if choice.is_fixed() { None } else { screen::width() };
        Ok(Layout { columns, sort, rows: order.rows.unwrap_or(usize::MAX), format, limit, has_choice: true })
    }

    /// The columns of a table that has no options.
    pub fn all(columns: &[Column<R>], format: TableFormat) -> Self {
        let is_shown = |column: &&Column<R>| column.head.is_shown(format);
        let columns = columns.iter().filter(is_shown).copied().collect();
        Layout { columns, sort: None, rows: usize::MAX, format, limit: screen::width(), has_choice: false }
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
        let mut rows: Vec<(Cell, B)> =
            rows.into_iter().map(|row| (self.sort_key(row.borrow()), row)).collect();
        if self.sort.is_some() {
            rows.sort_by(|(a, _), (b, _)| a.compare(b));
        }
        rows.truncate(self.rows);
        rows.into_iter().map(|(_, row)| row).collect()
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

/// The column of a name, or else the first with that header.
fn find<R>(all: &[Column<R>], name: &str, purpose: &str) -> Result<Column<R>> {
    let named = all.iter().find(|column| column.head.name == name);
    let is_called = |head: &Head| !head.is_extra() && (head.header == name || head.title() == name);
    let shown = || all.iter().find(|column| is_called(&column.head));
    named.or_else(shown).copied().with_context(|| {
        let names: Vec<_> = all.iter().map(|column| column.head.name).collect();
        format!("there is no column `{name}` {purpose}, but these: {}", names.join(", "))
    })
}
