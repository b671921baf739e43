//! The values of a counter, one by one and in each of many buckets: from levels where there are many, from
//! blocks of values elsewhere.

use crate::error::Error;
use crate::index::Index;
use crate::levels::{Summary, begin_of, bucket_of, shift};
use crate::picture::{Window, level, overlapping};
use crate::row::RowId;
use crate::values::{Value, Values};
use std::ops::ControlFlow;
use tracewing_units::Duration;

impl Index {
    /// The values of a counter that hold at some time between two others, whole and in the order of time,
    /// until `each` breaks.
    ///
    /// # Errors
    /// The file cannot be read, or is damaged.
    pub fn each_value(
        &self,
        row: RowId,
        from: Duration,
        to: Duration,
        mut each: impl FnMut(Value) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let mut room = Vec::new();
        let values = self.row(row).counter.as_ref().map_or(&[][..], |counter| &counter.values);
        for entry in overlapping(values, from, to) {
            let inside = |value: Value| match value.from < to && value.to > from {
                true => each(value),
                false => ControlFlow::Continue(()),
            };
            if self.value_block(entry, &mut room, inside)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// The values of a counter in each bucket of a window; buckets without any are left out.
    ///
    /// # Errors
    /// The file cannot be read, or is damaged.
    pub fn values(&self, row: RowId, window: Window) -> Result<Vec<(u64, Values)>, Error> {
        let (from, to) = window.times();
        let levels = self.row(row).counter.as_ref().map_or(&[][..], |counter| &counter.levels);
        let (mut found, mut at) = (Vec::new(), from);
        if let Some(level) = level(levels, window.shift) {
            let (mut nodes, mut room) = (Vec::new(), Vec::new());
            for entry in overlapping(&levels[level], from, to) {
                self.value_nodes(level, entry, &mut room, |bucket, values| {
                    nodes.push((bucket, *values));
                    Ok(())
                })?;
            }
            for (bucket, values) in nodes {
                let [begin, end] = [bucket, bucket + 1].map(|bucket| begin_of(bucket, shift(level)));
                if begin < at || end > to {
                    continue;
                }
                self.add_values(row, (at, begin), window.shift, &mut found)?;
                bucket_at(bucket_of(begin, window.shift), &mut found).add_all(&values);
                at = end;
            }
        }
        self.add_values(row, (at, to), window.shift, &mut found)?;
        Ok(found)
    }

    /// Adds the values between two times to the buckets of a window.
    fn add_values(
        &self,
        row: RowId,
        (from, to): (Duration, Duration),
        shift: u32,
        found: &mut Vec<(u64, Values)>,
    ) -> Result<(), Error> {
        self.each_value(row, from, to, |value| {
            let (mut at, to) = (value.from.max(from), value.to.min(to));
            while at < to {
                let number = bucket_of(at, shift);
                let end = begin_of(number + 1, shift).min(to);
                bucket_at(number, found).add(value, at, end);
                at = end;
            }
            ControlFlow::Continue(())
        })
    }
}

/// The last bucket, which has this number, added if it is new.
fn bucket_at(number: u64, found: &mut Vec<(u64, Values)>) -> &mut Values {
    if found.last().is_none_or(|(last, _)| *last != number) {
        found.push((number, Values::default()));
    }
    let last = found.len() - 1;
    &mut found[last].1
}
