//! The options of commands that print tables, each declared once.

use super::column::find;
use super::{Column, Head, heads};
use crate::format::{TableFormat, TableFormatOption};
use anyhow::Result;

/// The options of each command that prints a table.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct TableOptions {
    #[command(flatten)]
    pub sort: Sort,

    #[command(flatten)]
    pub first: First,

    #[command(flatten)]
    pub choice: Choice,

    #[command(flatten)]
    pub format: TableFormatOption,
}

/// Which rows of a table come first.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Sort {
    /// Sort by this column: the largest value first, text alphabetically
    #[arg(long, value_name = "COLUMN")]
    pub sort: Option<String>,
}

/// How many rows or events are printed.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub struct First {
    /// Print only the first N rows or events
    #[arg(short = 'n', long = "count", value_name = "N")]
    pub count: Option<u64>,
}

/// Which columns are printed.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Choice {
    /// Print these columns, in this order; separate several with commas
    #[arg(long, value_name = "COLUMN", value_delimiter = ',')]
    pub columns: Vec<String>,

    /// Print all columns in text output, however narrow the terminal is
    #[arg(long, conflicts_with = "columns")]
    pub wide: bool,
}

impl TableOptions {
    pub fn format(&self) -> TableFormat {
        self.format.format
    }
}

/// Checks names of columns where a command prints several tables: each is a column of one of them.
///
/// # Errors
/// There is no column of a given name.
pub fn check(sort: &Sort, choice: &Choice, tables: &[Vec<Head>]) -> Result<()> {
    let all = tables.concat();
    sort.sort.iter().try_for_each(|name| find(&all, name, "to sort by").map(drop))?;
    choice.columns.iter().try_for_each(|name| find(&all, name, "to print").map(drop))
}

impl First {
    /// Maximum number of rows.
    pub fn rows(self) -> usize {
        self.count.map_or(usize::MAX, |count| usize::try_from(count).unwrap_or(usize::MAX))
    }
}

impl Choice {
    /// The columns to print, of all that there are.
    ///
    /// # Errors
    /// There is no column of a given name.
    pub fn of<R>(&self, all: &[Column<R>], format: TableFormat) -> Result<Vec<Column<R>>> {
        let heads = heads(all);
        let chosen = self.columns.iter().map(|name| Ok(all[find(&heads, name, "to print")?]));
        match self.columns[..] {
            [] => Ok(self.default_columns(all, format)),
            _ => chosen.collect(),
        }
    }

    /// The same of one of several tables, which may lack some.
    pub(super) fn of_part<R>(&self, all: &[Column<R>], format: TableFormat) -> Vec<Column<R>> {
        let heads = heads(all);
        match self.columns[..] {
            [] => self.default_columns(all, format),
            _ => self.columns.iter().filter_map(|name| Some(all[find(&heads, name, "").ok()?])).collect(),
        }
    }

    fn default_columns<R>(&self, all: &[Column<R>], format: TableFormat) -> Vec<Column<R>> {
        let is_wide = self.wide && format == TableFormat::Table;
        let is_shown = |column: &&Column<R>| is_wide || column.head.is_shown(format);
        all.iter().filter(is_shown).copied().collect()
    }

    /// Whether the columns are to be printed whatever the terminal's width.
    pub fn is_fixed(&self) -> bool {
        self.wide || !self.columns.is_empty()
    }
}
