//! Which rows a page has of an index with more rows than it can have. A thread or task is among them with all
//! its parts and with what it belongs to, or not at all, so that no track lacks its functions or locks.

use std::cmp::Reverse;
use std::collections::HashMap;
use tracewing_index::{Index, Row, RowId, RowKind};

/// A value for each row. The numbers of most are their places; those of rows that are new in a recording that
/// is being made are not.
#[derive(Debug, Default)]
pub(crate) struct ByRow<V> {
    placed: Vec<V>,
    others: HashMap<RowId, V>,
}

impl<V: Copy + Default> ByRow<V> {
    pub(crate) fn of(index: &Index) -> Self {
        ByRow { placed: vec![V::default(); index.tail().rows.len()], others: HashMap::new() }
    }

    pub(crate) fn get(&self, row: RowId) -> V {
        match self.placed.get(row.0 as usize) {
            Some(value) => *value,
            None => self.others.get(&row).copied().unwrap_or_default(),
        }
    }

    pub(crate) fn at(&mut self, row: RowId) -> &mut V {
        match self.placed.get_mut(row.0 as usize) {
            Some(value) => value,
            None => self.others.entry(row).or_default(),
        }
    }
}

/// Rows of an index that were chosen.
#[derive(Debug)]
pub(crate) struct Choice {
    /// Without parts, which are chosen with their thread, task or CPU.
    units: ByRow<bool>,
    /// How many rows with something to show were not chosen.
    pub(crate) left_out: usize,
}

/// Whether a row has anything to show: system calls that may be wrong are not in the index.
fn is_shown(row: &Row) -> bool {
    row.kind != RowKind::SystemCalls || row.has_states()
}

/// What a row is chosen with: of a part, its thread, task or CPU.
pub(crate) fn unit(id: RowId, row: &Row) -> RowId {
    row.parent.filter(|_| row.is_part()).unwrap_or(id)
}

/// The rows with something to show.
pub(crate) fn shown(index: &Index) -> impl Iterator<Item = (RowId, &Row)> {
    index.rows().filter(|(_, row)| is_shown(row))
}

impl Choice {
    /// At most `most` of the rows that `wanted` has, with what they belong to: CPUs and counters; processes
    /// and tasks by name, of which very many have half of the room; then threads and tasks. Those that used
    /// CPUs the longest come first.
    pub(crate) fn new(index: &Index, most: usize, mut wanted: impl FnMut(RowId, &Row) -> bool) -> Self {
        let (mut sizes, mut is_wanted) = (ByRow::<u32>::of(index), ByRow::<bool>::of(index));
        let (mut units, mut all) = (Vec::new(), 0);
        for (id, row) in shown(index) {
            let unit = unit(id, row);
            *sizes.at(unit) += 1;
            all += 1;
            if wanted(id, row) && !std::mem::replace(is_wanted.at(unit), true) {
                units.push(unit);
            }
        }
        units.sort_by_key(|id| (Reverse(index.row(*id).used), *id));
        let is_first = |row: &Row| matches!(row.kind, RowKind::Cpu(_)) || row.is_part();
        let rest = |id: &RowId| !is_first(index.row(*id)) && !index.row(*id).is_group();
        let mut choosing = Choosing { index, sizes, units: ByRow::of(index), count: 0 };
        choosing.take(units.iter().filter(|id| is_first(index.row(**id))), most);
        let half = choosing.count + most.saturating_sub(choosing.count) / 2;
        choosing.take(units.iter().filter(|id| index.row(**id).is_group()), half);
        choosing.take(units.iter().filter(|id| rest(id)), most);
        choosing.take(units.iter().filter(|id| index.row(**id).is_group()), most);
        Choice { units: choosing.units, left_out: all - choosing.count }
    }

    /// Threads, tasks and other rows of these numbers, if they exist, with what they belong to.
    pub(crate) fn of(index: &Index, rows: impl IntoIterator<Item = RowId>) -> Self {
        let mut units = ByRow::of(index);
        for id in rows.into_iter().filter(|id| index.has(*id)) {
            for one in with_above(index, unit(id, index.row(id))) {
                *units.at(one) = true;
            }
        }
        Choice { units, left_out: 0 }
    }

    /// Whether a row was chosen.
    pub(crate) fn has(&self, id: RowId, row: &Row) -> bool {
        self.units.get(unit(id, row))
    }

    /// The rows that were chosen and have something to show, in the order of the index.
    pub(crate) fn rows(&self, index: &Index) -> Vec<RowId> {
        shown(index).filter(|(id, row)| self.has(*id, row)).map(|(id, _)| id).collect()
    }
}

/// A choice while it is made.
struct Choosing<'i> {
    index: &'i Index,
    /// Of each thread, task or CPU, how many rows it is with its parts.
    sizes: ByRow<u32>,
    units: ByRow<bool>,
    count: usize,
}

impl Choosing<'_> {
    /// Takes rows in their order until one has no room.
    fn take<'r>(&mut self, rows: impl Iterator<Item = &'r RowId>, most: usize) {
        for id in rows {
            let new: Vec<RowId> =
                with_above(self.index, *id).into_iter().filter(|id| !self.units.get(*id)).collect();
            let size: usize = new.iter().map(|id| self.sizes.get(*id) as usize).sum();
            if self.count + size > most {
                return;
            }
            self.count += size;
            new.into_iter().for_each(|id| *self.units.at(id) = true);
        }
    }
}

/// A row that is no part, and those that it belongs to: its process, and of a task those of its name.
fn with_above(index: &Index, id: RowId) -> Vec<RowId> {
    let row = index.row(id);
    [Some(id), row.parent, row.group].into_iter().flatten().collect()
}
