//! Tables whose rows are lists of cells in the order of their columns: what has not moved to [`Column`](super::Column) yet.

use super::column::{Head, Importance, Kind};
use super::{Cell, Order, Table};
use anyhow::{Context, Result};

const fn head(kind: Kind, header: &'static str, name: &'static str, importance: Importance) -> Head {
    Head { name, header, kind, meaning: "", importance, is_data: true, can_shrink: false, width: 0 }
}

/// A column of figures.
pub const fn figure(header: &'static str, name: &'static str) -> Head {
    head(Kind::Number, header, name, Importance::Normal)
}

/// A column of texts.
pub const fn text(header: &'static str, name: &'static str) -> Head {
    head(Kind::Text, header, name, Importance::Normal)
}

/// A column that only JSON and CSV have.
pub const fn hidden(name: &'static str) -> Head {
    head(Kind::Number, "", name, Importance::Extra)
}

impl Table {
    pub fn by_position(heads: impl Into<Vec<Head>>) -> Self {
        Self::new(heads.into(), Vec::new(), None)
    }

    pub fn push(&mut self, row: Vec<Cell>) {
        debug_assert_eq!(row.len(), self.heads.len(), "a row has a cell for each column");
        self.rows.push(row);
    }

    pub fn into_rows(self) -> Vec<Vec<Cell>> {
        self.rows
    }

    pub fn keep(&mut self, is_kept: impl Fn(&Head) -> bool) {
        let kept: Vec<bool> = self.heads.iter().map(is_kept).collect();
        let mut places = kept.iter();
        self.heads.retain(|_| places.next() == Some(&true));
        for row in &mut self.rows {
            let mut places = kept.iter();
            row.retain(|_| places.next() == Some(&true));
        }
    }

    pub fn arrange(&mut self, order: &Order) -> Result<()> {
        if let Some(by) = &order.sort {
            let called = |head: &Head| head.name == by || head.header == by;
            let place = self.heads.iter().position(called).with_context(|| {
                let names: Vec<_> = self.heads.iter().map(|head| head.name).collect();
                format!("there is no column `{by}` to sort by, but these: {}", names.join(", "))
            })?;
            self.rows.sort_by(|a, b| a[place].compare(&b[place]));
        }
        self.rows.truncate(order.rows.unwrap_or(usize::MAX));
        Ok(())
    }
}
